#!/usr/bin/env python3
"""Exports networks of torchvision, timm and transformers with random weights for benchmarks/models.py.

    exports.py FOLDER [NAME ...]     (pip install torch torchvision timm transformers onnx onnxscript)
    exports.py --list

For each NAME, or all of them, FOLDER gets NAME.onnx and NAME.npz, its inputs. What is there already is left alone.
"""

import argparse
import sys
import warnings
from pathlib import Path

VISION = """
    alexnet convnext_tiny deeplabv3_mobilenet_v3_large densenet121 efficientnet_b0 efficientnet_v2_s fcn_resnet50 googlenet inception_v3
    lraspp_mobilenet_v3_large maxvit_t mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small r3d_18 regnet_x_1_6gf regnet_y_400mf
    resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vit_b_32 wide_resnet50_2
""".split()
TIMM = """
    cait_xxs24_224 coat_lite_tiny convnextv2_nano cspdarknet53 deit_tiny_patch16_224 edgenext_small efficientformer_l1 eva02_tiny_patch14_224
    fastvit_t8 ghostnet_100 hrnet_w18_small levit_128 mixer_s16_224 mobilenetv4_conv_small mobileone_s1 mobilevit_s nfnet_l0 poolformer_s12
    pvt_v2_b0 repvgg_a2 res2net50_26w_4s resmlp_12_224 samvit_base_patch16_224 tinynet_a twins_pcpvt_small visformer_small xcit_nano_12_p16_224
""".split()
# How large the batch's pictures are, where not 224 x 224.
SIDES = {"inception_v3": 299, "fcn_resnet50": 256, "deeplabv3_mobilenet_v3_large": 256, "lraspp_mobilenet_v3_large": 256}


def wrap(net, *outputs):
    """The network as one that gives tensors only: those called so, or the first."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, *inputs):
            made = self.net(*inputs)
            if isinstance(made, torch.Tensor):
                return made
            if outputs:
                return tuple(made[name] for name in outputs)
            return made[0] if isinstance(made, (tuple, list)) else next(iter(made.values()))

    return First()


def transformers_networks():
    """A maker for each name of a network of transformers and its inputs."""
    import torch
    import transformers as t

    def tokens(length, vocabulary=30000):
        return torch.randint(0, vocabulary, (1, length))

    def configured(model, **settings):
        config = getattr(t, f"{model}Config")(**settings)
        config._attn_implementation = "eager"
        return config

    def named(model, **settings):
        return getattr(t, f"{model}Model")(configured(model, **settings))

    def text(model, length=128, **settings):
        vocabulary = settings.get("vocab_size", 30000)
        return lambda: (wrap(named(model, **settings)), (tokens(length, vocabulary),))

    def sound(model, **settings):
        return lambda: (wrap(named(model, **settings)), (torch.randn(1, 16000),))

    def whisper():
        return named("Whisper", d_model=384, encoder_layers=4, encoder_attention_heads=6, decoder_layers=4, decoder_attention_heads=6)

    def whisper_encoder():
        return wrap(whisper().get_encoder()), (torch.randn(1, 80, 3000),)

    def whisper_decoder():
        class Decoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.decoder = whisper().get_decoder()

            def forward(self, ids, memory):
                return self.decoder(input_ids=ids, encoder_hidden_states=memory, use_cache=False)[0]

        return Decoder(), (tokens(32), torch.randn(1, 1500, 384))

    def detr():
        config = t.DetrConfig(use_timm_backbone=False, backbone_config=t.ResNetConfig(out_features=["stage4"]), use_pretrained_backbone=False, backbone=None)
        return wrap(t.DetrForObjectDetection(config), "logits", "pred_boxes"), (torch.randn(1, 3, 320, 320),)

    def yolos():
        config = t.YolosConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, image_size=[256, 256])
        return wrap(t.YolosForObjectDetection(config), "logits", "pred_boxes"), (torch.randn(1, 3, 256, 256),)

    def segformer():
        return wrap(t.SegformerForSemanticSegmentation(t.SegformerConfig())), (torch.randn(1, 3, 256, 256),)

    def clip_text():
        return wrap(t.CLIPTextModel(t.CLIPTextConfig())), (tokens(77),)

    def causal(model, length, **settings):
        def make():
            net = t.AutoModelForCausalLM.from_config(configured(model, use_cache=False, **settings))
            return wrap(net), (tokens(length, settings["vocab_size"]),)

        return make

    small = {"hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "intermediate_size": 1536, "vocab_size": 8000}
    return {
        "albert_base": text("Albert", hidden_size=768, num_attention_heads=12, intermediate_size=3072),
        "bert_base": text("Bert"),
        "clip_text": clip_text,
        "conformer": sound("Wav2Vec2Conformer", hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024),
        "deberta_v2": text("DebertaV2", vocab_size=30000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536,
                           relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=64),  # fmt: skip
        "detr": detr,
        "distilbert": text("DistilBert"),
        "electra_small": text("Electra", hidden_size=256, num_attention_heads=4, intermediate_size=1024),
        "gpt2_small": causal("GPT2", 64, n_layer=6, vocab_size=8000, bos_token_id=0, eos_token_id=0),
        "llama_small": causal("Llama", 64, num_key_value_heads=2, **small),
        "mamba_small": causal("Mamba", 32, hidden_size=256, num_hidden_layers=4, vocab_size=8000),
        "qwen2_small": causal("Qwen2", 64, num_key_value_heads=2, **small),
        "segformer_b0": segformer,
        "wav2vec2": sound("Wav2Vec2", num_hidden_layers=6),
        "whisper_tiny_decoder": whisper_decoder,
        "whisper_tiny_encoder": whisper_encoder,
        "yolos_tiny": yolos,
    }


def make(name):
    """The network, and its inputs."""
    import torch

    others = transformers_networks()
    if name in others:
        return others[name]()
    side = SIDES.get(name, 224)
    if name in TIMM:
        import timm

        if hasattr(timm.layers, "set_fused_attn"):
            timm.layers.set_fused_attn(False)
        net = timm.create_model(name, pretrained=False)
    else:
        import torchvision

        options = {}
        if name.startswith(("fcn", "deeplab", "lraspp")):
            options = {"weights_backbone": None}
        elif name in ("googlenet", "inception_v3"):
            options = {"init_weights": False}
        net = torchvision.models.get_model(name, weights=None, **options)
    picture = torch.randn(1, 3, 8, 112, 112) if name == "r3d_18" else torch.randn(1, 3, side, side)
    return wrap(net), (picture,)


def disturb(net):
    """Statistics and scales that no folding makes trivial, and no output that is zero everywhere."""
    import torch

    for module in net.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for parameter in net.parameters():
        if not parameter.any():
            parameter.data.normal_(0, 0.02)


def export(name, folder):
    import numpy as np
    import torch

    torch.manual_seed(0)
    net, inputs = make(name)
    net.eval()
    disturb(net)
    path = folder / f"{name}.onnx"
    names = [f"input{i}" for i in range(len(inputs))]
    with torch.no_grad():
        try:
            torch.onnx.export(net, inputs, str(path), input_names=names, opset_version=18, dynamo=False)
        except Exception:  # The newer exporter takes what the older one does not.
            torch.onnx.export(net, inputs, str(path), input_names=names, opset_version=20, dynamo=True, verbose=False, external_data=False)
    np.savez(folder / f"{name}.npz", **{n: value.numpy() for n, value in zip(names, inputs)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true", help="names only")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    known = [*VISION, *TIMM, *transformers_networks()]
    if args.list:
        return print("\n".join(known))
    if not args.folder:
        parser.error("FOLDER is missing")
    for name in args.names:
        if name not in known:
            parser.error(f"no network is called '{name}'")
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in args.names or known:
        if (args.folder / f"{name}.npz").exists():
            continue
        try:
            export(name, args.folder)
            print(name, flush=True)
        except Exception as error:
            failed = True
            print(f"{name} failed: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
