#!/usr/bin/env python3
"""Names of the standard library that a file uses without including their header, itself or through
headers of this tree. It builds with the library at hand, which includes one header from another, and
breaks with the next version of it. Argument: the root; default the tree this script is in."""

import functools
import re
import sys
from pathlib import Path

from check_tree import tree_files

RANGES = ("sort stable_sort find find_if find_if_not find_end count count_if any_of all_of none_of transform copy "
          "copy_if copy_n fill min_element max_element min max equal replace replace_if reverse unique lower_bound "
          "upper_bound nth_element remove remove_if generate is_sorted contains adjacent_find mismatch search")
ALGORITHM = ("sort stable_sort partial_sort nth_element find_if find_if_not find_first_of count count_if any_of all_of none_of "
             "transform copy_n copy_if fill fill_n min_element max_element minmax_element min max clamp equal replace "
             "reverse unique lower_bound upper_bound equal_range remove_if generate is_sorted rotate "
             "shuffle set_difference set_intersection merge inplace_merge")

# Header -> what says that it is needed. Comments and strings are cut out before.
NEEDS = {
    "algorithm": rf"std::ranges::(?:{RANGES.replace(' ', '|')})\b|std::(?:{ALGORITHM.replace(' ', '|')})\b\s*[(<]",
    "array": r"std::array\b",
    "atomic": r"std::atomic\b|std::atomic_\w+",
    "bit": r"std::(?:bit_cast|countl_zero|countr_zero|bit_width|bit_ceil|has_single_bit|popcount|endian)\b",
    "charconv": r"std::(?:from_chars|to_chars|chars_format)\b",
    "chrono": r"std::chrono\b",
    "cmath": r"std::(?:isnan|isfinite|isinf|ldexp|frexp|nearbyint|rint|llround|lround|lerp|sqrt|exp2?|log2?|pow|floor|ceil|"
             r"fma|hypot|copysign|signbit|nextafter|erfc?|tanh|trunc)\b\s*\(|\bHUGE_VAL\b|\bNAN\b|\bINFINITY\b",
    "condition_variable": r"std::condition_variable\b",
    "cstddef": r"std::(?:size_t|ptrdiff_t|byte|max_align_t)\b",
    "cstdint": r"std::u?int(?:8|16|32|64|ptr|max)_t\b|\bU?INT(?:8|16|32|64)_M(?:AX|IN)\b",
    "cstdio": r"std::(?:FILE|fopen|fclose|f?printf|snprintf|puts|fputs|fflush|remove|rename|perror)\b\s*[(*]",
    "cstdlib": r"std::(?:getenv|abort|exit|_Exit|strtod|strtoll?|strtoull?|atof|atoi|free|malloc|aligned_alloc|system)\b",
    "cstring": r"std::(?:memcpy|memmove|memset|memcmp|strlen|strcmp|strerror|strchr|strstr)\b",
    "deque": r"std::deque\b",
    "exception": r"std::(?:exception|exception_ptr|current_exception|rethrow_exception|terminate)\b",
    "filesystem": r"std::filesystem\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::(?:function|hash|reference_wrapper|ref|cref|greater|less|plus|invoke|identity)\b\s*[<({]",
    "initializer_list": r"std::initializer_list\b",
    "iostream": r"std::(?:cout|cerr|cin|clog)\b",
    "iterator": r"std::(?:back_inserter|inserter|istreambuf_iterator|ostream_iterator|input_iterator_tag|make_move_iterator)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(?:multi)?map\b",
    "memory": r"std::(?:unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this|addressof)\b",
    "mutex": r"std::(?:mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once)\b",
    "numeric": r"std::(?:accumulate|iota|gcd|lcm|inner_product|partial_sum|reduce|exclusive_scan|inclusive_scan|midpoint)\b",
    "numbers": r"std::numbers\b",
    "optional": r"std::(?:optional|nullopt)\b",
    "set": r"std::(?:multi)?set\b",
    "span": r"std::(?:span|as_bytes|as_writable_bytes|dynamic_extent)\b",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(?:runtime_error|logic_error|invalid_argument|out_of_range|domain_error|length_error)\b",
    "string": r"std::(?:string|to_string|getline|stoi|stol|stoll|stoull?|stod)\b",
    "string_view": r"std::string_view\b",
    "system_error": r"std::(?:error_code|error_condition|errc|system_error|generic_category|system_category)\b",
    "thread": r"std::(?:j?thread|this_thread)\b",
    "tuple": r"std::(?:tuple|make_tuple|tie|apply|ignore)\b\s*[<(=;]",
    "type_traits": r"std::(?:is_same|is_same_v|enable_if|enable_if_t|conditional_t|decay_t|remove_cvref_t|is_integral_v|"
                   r"is_floating_point_v|is_trivially_copyable_v|underlying_type_t|make_unsigned_t|make_signed_t|true_type|false_type)\b",
    "unordered_map": r"std::unordered_(?:multi)?map\b",
    "unordered_set": r"std::unordered_(?:multi)?set\b",
    "utility": r"std::(?:move|forward|pair|make_pair|exchange|swap|in_place\w*|index_sequence|make_index_sequence)\b",
    "variant": r"std::(?:variant|monostate|visit|get_if|holds_alternative|in_place_type)\b",
    "vector": r"std::vector\b",
}
NEEDS = {header: re.compile(pattern) for header, pattern in NEEDS.items()}

# Headers that the standard itself requires to give what another one declares.
ALSO = {"iostream": {"ostream", "istream", "ios"}, "string": {"string_view", "initializer_list"},
        "vector": {"initializer_list"}, "map": {"initializer_list", "utility"}, "set": {"initializer_list"},
        "unordered_map": {"utility"}, "array": {"cstddef"}, "span": {"array", "cstddef"},
        "memory": {"cstddef"}, "tuple": {"utility"}, "fstream": {"iostream"},
        "filesystem": {"string", "system_error", "chrono"}, "mutex": {"system_error", "chrono"},
        "thread": {"chrono"}, "condition_variable": {"mutex"}, "stdexcept": {"exception", "string"},
        "system_error": {"stdexcept", "exception", "string"}, "sstream": {"string"}, "cstring": {"cstddef"},
        "cstdlib": {"cstddef"}, "cstdio": {"cstddef"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# Comments, raw strings, strings, characters. A digit separator is no quote.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)


class Tree:
    def __init__(self, root):
        self.root = Path(root)

    @functools.lru_cache(maxsize=None)
    def text(self, name):
        return (self.root / name).read_text()

    @functools.lru_cache(maxsize=None)
    def given(self, name, seen=frozenset()):
        """Standard headers that a file includes, itself or through headers of the tree."""
        headers = set()
        for quote, path in INCLUDE.findall(self.text(name)):
            if quote == "<":
                headers |= {path} | ALSO.get(path, set())
            elif (self.root / path).is_file() and path not in seen:
                headers |= self.given(path, seen | {name})
        return headers

    def missing(self, name):
        """(line, name used, header) for the first use of each header that is missing."""
        code = NO_CODE.sub(lambda m: "\n" * m[0].count("\n") if m[0][0] == "/" else '""', self.text(name))
        given = self.given(name)
        for header, pattern in NEEDS.items():
            use = pattern.search(code)
            if use and header not in given:
                yield code.count("\n", 0, use.start()) + 1, use[0].strip(" (<"), header


def check_std_includes(root):
    tree = Tree(root)
    # A header without #pragma once is a piece of the files that include it.
    files = [name for name in tree_files(Path(root)) if name.endswith(".cc")
             or name.endswith(".h") and "#pragma once" in tree.text(name)]
    return [f"{name}:{line}: {use} without #include <{header}>"
            for name in files for line, use, header in tree.missing(name)]


if __name__ == "__main__":
    breaches = check_std_includes(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    print(*breaches, f"{len(breaches)} breaches", sep="\n")
    sys.exit(1 if breaches else 0)
