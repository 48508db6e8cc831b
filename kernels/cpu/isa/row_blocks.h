// How a number of rows is cut into register blocks: as few as possible, as even as possible, the
// larger ones first. Included inside each level's unnamed namespace.
struct RowBlocks {
  std::int64_t count, smaller, larger;  // `larger` blocks of smaller + 1 rows come first
  explicit RowBlocks(std::int64_t rows)
      : count((rows + kRowBlock - 1) / kRowBlock),
        smaller(count > 0 ? rows / count : 0),
        larger(rows - smaller * count) {}
  int size(std::int64_t block) const {
    return static_cast<int>(smaller + (block < larger ? 1 : 0));
  }
};

template <auto kValue>
struct Constant {
  static constexpr auto value = kValue;
};
