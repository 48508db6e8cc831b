"""Small checkpoints that the package compressed-tensors writes itself, and beside each what it says that its
weights stand for. Those in fixtures/ were made once, since the package pulls in PyTorch; ./scripts/test --full
makes them anew.

compressed_tensors_files.py FOLDER
"""

import json
import os
import sys

try:
    import torch
    from compressed_tensors.compressors import IntQuantizationCompressor, NaiveQuantizationCompressor, PackedQuantizationCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements-full.txt)")
    sys.exit(77)

E, K, N = 2, 64, 32
CONFIG = {"model_type": "qwen3_moe", "num_experts": E, "num_experts_per_tok": 1, "hidden_size": K,
          "moe_intermediate_size": N, "norm_topk_prob": True, "hidden_act": "silu", "torch_dtype": "bfloat16"}
TOKEN = {"num_bits": 8, "strategy": "token", "dynamic": True, "symmetric": True}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
# Name -> (compressor, its name of the format, arguments of the weights, of the activations).
KINDS = {
    "int4-group32": (PackedQuantizationCompressor, "pack-quantized", {**INT4, "symmetric": True}, None),
    "int4-group32-zero-points": (PackedQuantizationCompressor, "pack-quantized", {**INT4, "symmetric": False}, None),
    "int8-channel-weights": (PackedQuantizationCompressor, "pack-quantized",
                             {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}, None),
    "int8-channel-token": (IntQuantizationCompressor, "int-quantized",
                           {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}, {**TOKEN, "type": "int"}),
    "fp8-channel-token": (NaiveQuantizationCompressor, "float-quantized",
                          {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}, {**TOKEN, "type": "float"}),
    "fp8-tensor-static": (NaiveQuantizationCompressor, "float-quantized",
                          {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True},
                          {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}),
}


def parameters(weight, args):
    """The package's own scales and zero points of a weight."""
    if args.strategy == "tensor":
        low, high = weight.min().reshape(1), weight.max().reshape(1)
    elif args.strategy == "channel":
        low, high = weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    else:
        groups = weight.reshape(weight.shape[0], -1, args.group_size)
        low, high = groups.amin(2), groups.amax(2)
    return calculate_qparams(low, high, args)


def make(folder, name):
    compressor, form, weights, activations = KINDS[name]
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights),
                                input_activations=QuantizationArgs(**activations) if activations else None)
    torch.manual_seed(sorted(KINDS).index(name))
    tensors, dense = {}, {}
    for expert in range(E):
        for projection, rows, cols in (("gate_proj", N, K), ("up_proj", N, K), ("down_proj", K, N)):
            at = f"model.layers.0.mlp.experts.{expert}.{projection}."
            weight = (torch.randn(rows, cols) * cols**-0.5 + 0.1).to(torch.bfloat16)
            scale, zero_point = parameters(weight, scheme.weights)
            state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero_point}
            packed = compressor.compress(state, scheme)
            # In fp32 nothing is rounded.
            exact = compressor.decompress({**packed, "weight_scale": packed["weight_scale"].float()}, scheme)
            dense[at + "weight"] = exact["weight"].float().contiguous()
            if activations and not activations.get("dynamic", False):
                packed["input_scale"] = torch.tensor([0.02])
            tensors.update({at + key: value.contiguous() for key, value in packed.items()})
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    save_file(tensors, os.path.join(folder, name, "model.safetensors"))
    save_file(dense, os.path.join(folder, name + ".dense.safetensors"))
    quantization = {"quant_method": "compressed-tensors", "format": form,
                    "config_groups": {"group_0": scheme.model_dump(mode="json")}}
    with open(os.path.join(folder, name, "config.json"), "w") as file:
        json.dump({**CONFIG, "quantization_config": quantization}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    for kind in KINDS:
        make(sys.argv[1], kind)
