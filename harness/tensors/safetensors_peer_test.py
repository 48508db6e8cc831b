"""Our safetensors files in the eyes of the format's own library, and its files in ours. Argument: the
safetensors_sample binary."""

import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)


class Peers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "x.safetensors")

    def test_what_we_write_the_library_reads(self):
        subprocess.run([BINARY, "write", self.file], check=True)
        with open(self.file, "rb") as file:
            tensors = dict(safetensors.deserialize(file.read()))
        self.assertEqual(len(tensors), 18)
        for name, tensor in tensors.items():
            dtype = tensor["dtype"]
            count = {"BOOL": 2}.get(dtype, 256)
            data = bytes(tensor["data"])
            self.assertEqual(data, bytes(b % count for b in range(len(data))), name)
            if name.startswith("x."):
                self.assertEqual(f"x.{dtype}", name)
                self.assertEqual(tensor["shape"], [3, 1, 5])
        self.assertEqual(tensors["scalar"]["shape"], [])
        self.assertEqual(tensors["empty"]["shape"], [2, 0])
        with safetensors.safe_open(self.file, framework="np") as file:
            self.assertEqual(file.metadata(), {"format": "pt", "case": 'a "quoted" one'})
            np.testing.assert_array_equal(
                file.get_tensor("x.F64").view(np.uint8).ravel(), np.arange(120, dtype=np.uint8))

    def test_what_the_library_writes_we_read(self):
        rng = np.random.default_rng(1)
        tensors = {f"t.{dtype}": rng.integers(0, 2, (3, 5)).astype(dtype)
                   for dtype in ("bool", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8")}
        tensors["scalar"] = np.array(2.5, dtype=np.float32)
        tensors["empty"] = np.zeros((4, 0), dtype=np.float16)
        tensors["odd"] = np.arange(7, dtype=np.uint8)
        safetensors.numpy.save_file(tensors, self.file, metadata={"format": "np"})
        out = subprocess.run([BINARY, "read", self.file], check=True, capture_output=True, text=True).stdout
        lines = out.splitlines()
        self.assertIn("metadata format np", lines)
        read = {line.split(" ")[0]: line.split(" ")[1:] for line in lines if not line.startswith("metadata")}
        self.assertEqual(set(read), set(tensors))
        for name, array in tensors.items():
            _, shape, data = read[name]
            self.assertEqual(shape, ",".join(map(str, array.shape)), name)
            self.assertEqual(data, array.tobytes().hex(), name)


if __name__ == "__main__":
    BINARY = sys.argv.pop()
    unittest.main()
