"""Ceilings of the GPU at hand: read bandwidth, FP8 and BF16 matrix rates. Prints JSON."""
import json, torch

def median_ms(call, repeats=30):
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record(); call(); b.record(); torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2]

big = torch.randn(1 << 30, device="cuda", dtype=torch.float32)
read = 4 * big.numel() / median_ms(lambda: big.sum()) / 1e6
other = torch.empty_like(big)
copy = 8 * big.numel() / median_ms(lambda: other.copy_(big)) / 1e6
del big, other
n = 8192
a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
bf16 = 2 * n**3 / median_ms(lambda: a @ b) / 1e9
a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
one = torch.ones((), device="cuda")
fp8 = 2 * n**3 / median_ms(lambda: torch._scaled_mm(a8, b8, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)) / 1e9
print(json.dumps({"device": torch.cuda.get_device_name(), "read_GBps": round(read), "copy_rw_GBps": round(copy),
                  "bf16_TFLOPs": round(bf16), "fp8_TFLOPs_fast_accum": round(fp8)}))
