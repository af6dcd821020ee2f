"""Some fifty networks with random weights, the blocks of well-known ones on small inputs: `NETWORKS` has a function of a seed for each."""

import math

import numpy as np
from network import Network

SIDE = 56


def picture(seed, channels=3, side=SIDE):
    return Network(seed, (1, channels, side, side))


def unit(net, x, filters, taps=3, stride=1, groups=1, act="Relu", gain=1.0, dilation=1):
    """A convolution, its normalisation and activation."""
    y = net.norm(net.conv(x, filters, taps, stride, groups, dilation), gain)
    return net.act(y, act) if act else y


def classify(net, x, classes=1000):
    features = net.reshape(net.mean(x), [x.shape[0], x.shape[1]])
    return net.finish(net.dense(features, classes))


def shortcut(net, x, filters, stride):
    if stride == 1 and x.shape[1] == filters:
        return x
    return unit(net, x, filters, 1, stride, act=None)


def basic(net, x, filters, stride):
    y = unit(net, unit(net, x, filters, 3, stride), filters, act=None)
    return net.act(net.plus(y, shortcut(net, x, filters, stride)))


def bottleneck(net, x, filters, stride, groups=1, wide=1, gain=1.0):
    inner = filters // 4 * wide
    y = unit(net, x, inner, 1, gain=gain)
    y = unit(net, y, inner, 3, stride, groups, gain=gain)
    y = unit(net, y, filters, 1, act=None, gain=gain)
    return net.act(net.plus(y, shortcut(net, x, filters, stride)))


def resnet(seed, block, depths, width=64, stem=3, **more):
    net = picture(seed)
    x = unit(net, net.input, width // 2, stem, 1 if stem == 3 else 2)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            x = block(net, x, width << stage, 2 if i == 0 and stage else 1, **more)
    return net, classify(net, x)


def cifar(seed, width=16, stages=3, classes=10):
    """A ResNet of 20 layers for pictures of 32x32, or its first stages."""
    net = picture(seed, side=32)
    x = unit(net, net.input, width)
    for stage in range(stages):
        for i in range(3):
            x = basic(net, x, width << stage, 2 if i == 0 and stage else 1)
    return net, classify(net, x, classes)


def plain(seed, width, layers=4):
    """Nothing but convolutions of 3x3, whose errors add up."""
    net = picture(seed, channels=width, side=28)
    x = net.input
    for _ in range(layers):
        x = unit(net, x, width)
    return net, net.finish(x)


def preactivated(seed):
    net = picture(seed)
    x = net.conv(net.input, 64)
    for _ in range(12):
        y = net.act(net.norm(x))
        y = net.act(net.norm(net.conv(y, 64)))
        x = net.plus(x, net.conv(y, 64))
    return net, classify(net, net.act(net.norm(x)))


def vgg(seed, normalised=True):
    net = picture(seed)
    x = net.input
    for filters, count in ((32, 1), (64, 2), (128, 2), (256, 2)):
        for _ in range(count):
            x = unit(net, x, filters) if normalised else net.act(net.conv(x, filters, bias=True))
        x = net.pool(x)
    x = net.reshape(x, [1, math.prod(x.shape[1:])])
    for _ in range(2):
        x = net.act(net.dense(x, 512))
    return net, net.finish(net.dense(x, 1000))


def densenet(seed, layers=8, growth=16):
    net = picture(seed)
    x = unit(net, net.input, 32)
    for stage in range(3):
        for _ in range(layers):
            y = net.conv(net.act(net.norm(x)), 4 * growth, 1)
            x = net.concat([x, net.conv(net.act(net.norm(y)), growth)])
        if stage < 2:
            x = net.pool(net.conv(net.act(net.norm(x)), x.shape[1] // 2, 1), kind="AveragePool")
    return net, classify(net, net.act(net.norm(x)))


def squeeze(net, x, act="Relu", gate="Sigmoid"):
    """Scales channels by what their means say."""
    y = net.act(net.conv(net.mean(x), max(x.shape[1] // 4, 8), 1, bias=True), act)
    return net.mul(x, net.act(net.conv(y, x.shape[1], 1, bias=True), gate))


def inverted(net, x, filters, stride, act, taps=3, squeezed=False):
    inner = 4 * x.shape[1]
    y = unit(net, x, inner, 1, act=act)
    y = unit(net, y, inner, taps, stride, inner, act)
    if squeezed:
        y = squeeze(net, y)
    y = unit(net, y, filters, 1, act=None)
    return net.plus(x, y) if y.shape == x.shape else y


def mobilenet(seed, act, squeezed=False, taps=3):
    net = picture(seed)
    x = unit(net, net.input, 16, 3, 2, act=act)
    for filters, stride in ((24, 1), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (80, 1), (160, 1), (160, 1)):
        x = inverted(net, x, filters, stride, act, taps, squeezed)
    return net, classify(net, unit(net, x, 960, 1, act=act))


def mobilenet_v1(seed):
    net = picture(seed)
    x = unit(net, net.input, 32, 3, 2)
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 1), (512, 1), (512, 1)):
        x = unit(net, x, x.shape[1], 3, stride, x.shape[1], "Relu6")
        x = unit(net, x, filters, 1, act="Relu6")
    return net, classify(net, x)


def squeezenet(seed):
    net = picture(seed)
    x = net.pool(net.act(net.conv(net.input, 64, bias=True)))
    for inner, filters in ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (64, 256)):
        y = net.act(net.conv(x, inner, 1, bias=True))
        x = net.concat([net.act(net.conv(y, filters, taps, bias=True)) for taps in (1, 3)])
    return net, net.finish(net.mean(net.conv(x, 1000, 1, bias=True)))


def inception(seed):
    net = picture(seed, side=28)
    x = unit(net, net.input, 64)
    for width in (32, 32, 48, 64):
        parts = [unit(net, x, width, 1)]
        parts.append(unit(net, unit(net, x, width, 1), width))
        parts.append(unit(net, unit(net, unit(net, x, width, 1), width, (1, 7)), width, (7, 1)))
        parts.append(unit(net, net.pool(x, 3, 1), width, 1))
        x = net.concat(parts)
    return net, classify(net, x)


def shufflenet(seed):
    net = picture(seed)
    x = unit(net, net.input, 48, 3, 2)
    for _ in range(8):
        half = x.shape[1] // 2
        y = unit(net, net.cut(x, half, 2 * half), half, 1)
        y = unit(net, y, half, 3, 1, half, act=None)
        x = net.shuffle(net.concat([net.cut(x, 0, half), unit(net, y, half, 1)]), 2)
    return net, classify(net, unit(net, x, 1024, 1))


def convnext(seed):
    net = picture(seed)
    x = net.conv(net.input, 96, 5, 4)
    for _ in range(6):
        y = net.transpose(net.conv(x, 96, 7, 1, 96, bias=True), [0, 2, 3, 1])
        y = net.dense(net.act(net.dense(net.layer_norm(y), 384), "Gelu"), 96)
        x = net.plus(x, net.transpose(y, [0, 3, 1, 2]))
    return net, classify(net, x)


def repvgg(seed):
    net = picture(seed)
    x = unit(net, net.input, 48, 3, 2)
    for _ in range(10):
        y = net.plus(unit(net, x, 48, act=None), unit(net, x, 48, 1, act=None))
        x = net.act(net.plus(y, net.norm(x)))
    return net, classify(net, x)


def unet(seed):
    net = picture(seed)
    skips, x = [], net.input
    for width in (32, 64, 128):
        x = unit(net, unit(net, x, width), width)
        skips.append(x)
        x = net.pool(x)
    x = unit(net, x, 256)
    for skip in reversed(skips):
        x = net.concat([net.deconv(x, skip.shape[1]), skip])
        x = unit(net, unit(net, x, skip.shape[1]), skip.shape[1])
    return net, net.finish(net.conv(x, 8, 1, bias=True))


def dilated(seed):
    net = picture(seed, side=28)
    x = unit(net, net.input, 64)
    for dilation in (1, 2, 4, 8, 4, 2):
        x = net.plus(x, unit(net, x, 64, dilation=dilation))
    return net, net.finish(net.conv(x, 21, 1, bias=True))


def yolo(seed):
    net = picture(seed, side=64)
    x, maps = unit(net, net.input, 32, act="Silu"), []
    for width in (64, 128, 256):
        x = unit(net, x, width, 3, 2, act="Silu")
        a, b = net.cut(x, 0, width // 2), net.cut(x, width // 2, width)
        for _ in range(2):
            b = net.plus(b, unit(net, unit(net, b, width // 2, act="Silu"), width // 2, act="Silu"))
        x = unit(net, net.concat([a, b]), width, 1, act="Silu")
        maps.append(x)
    y = net.concat([net.spread(maps[2]), maps[1]])
    return net, net.finish(net.conv(unit(net, y, 128, act="Silu"), 85, 1, bias=True))


def superresolution(seed):
    net = picture(seed, side=40)
    x = first = net.conv(net.input, 64, bias=True)
    for _ in range(6):
        y = net.conv(net.act(net.conv(x, 64, bias=True)), 64, bias=True)
        x = net.plus(x, net.mul(y, net.constant(np.float32(0.2))))
    x = net.plus(net.conv(x, 64, bias=True), first)
    return net, net.finish(net.conv(net.spread(x), 3, bias=True))


def autoencoder(seed):
    net = picture(seed)
    x = net.input
    for width in (32, 64, 128):
        x = unit(net, x, width, 3, 2, act="LeakyRelu")
    for width in (64, 32, 16):
        x = net.act(net.norm(net.deconv(x, width)))
    return net, net.finish(net.act(net.conv(x, 3, bias=True), "Tanh"))


def wavenet(seed):
    net = Network(seed, (1, 64, 256))
    x, total = net.input, None
    for i in range(12):
        gate = net.act(net.conv(x, 64, 3, dilation=1 << i % 6, bias=True), "Sigmoid")
        y = net.mul(net.act(net.conv(x, 64, 3, dilation=1 << i % 6, bias=True), "Tanh"), gate)
        skip = net.conv(y, 64, 1, bias=True)
        total = skip if total is None else net.plus(total, skip)
        x = net.plus(x, net.conv(y, 64, 1, bias=True))
    return net, net.finish(net.conv(net.act(total), 256, 1, bias=True))


def speech(seed):
    """A line of features through convolutions, then recurrent."""
    net = Network(seed, (1, 80, 128))
    x = net.input
    for filters, stride in ((128, 1), (128, 2), (256, 2)):
        x = unit(net, x, filters, 5, stride)
    y = net.recurrent(net.transpose(x, [2, 0, 1]), "GRU", 256)
    return net, net.finish(net.dense(y, 64))


def encoder(net, x, layers, heads, act="Gelu", first=False, causal=False, memory=None):
    """Layers of a transformer, their normalisation first or last."""
    width = x.shape[-1]

    def around(part):
        nonlocal x
        x = net.plus(x, part(net.layer_norm(x))) if first else net.layer_norm(net.plus(x, part(x)))

    for _ in range(layers):
        around(lambda y: net.attention(y, heads, causal=causal))
        if memory:
            around(lambda y: net.attention(y, heads, memory))
        around(lambda y: net.dense(net.act(net.dense(y, 4 * width), act), width))
    return x


def sentences(seed, length=64, width=256, batch=1):
    return Network(seed, (batch, length, width))


def bert(seed, layers=4, width=256, batch=1):
    net = sentences(seed, width=width, batch=batch)
    return net, net.finish(encoder(net, net.input, layers, width // 64))


def gpt(seed):
    net = sentences(seed)
    x = encoder(net, net.input, 4, 4, first=True, causal=True)
    return net, net.finish(net.dense(net.layer_norm(x), 1000, bias=False))


def translation(seed):
    net = sentences(seed, length=48)
    memory = encoder(net, net.input, 2, 4, "Relu")
    return net, net.finish(encoder(net, net.input, 2, 4, "Relu", causal=True, memory=memory))


def vit(seed):
    net = picture(seed, side=64)
    x = net.conv(net.input, 192, 8, 8, bias=True)
    x = net.transpose(net.reshape(x, [1, 192, math.prod(x.shape[2:])]), [0, 2, 1])
    x = encoder(net, net.plus(x, net.constant(net.normal(*x.shape, scale=0.5))), 6, 3, first=True)
    return net, net.finish(net.dense(net.layer_norm(x), 1000))


def gated(seed, rows):
    """Feed-forward layers of a Llama, of one row as in decoding, or several."""
    net = sentences(seed, length=rows, width=512)
    x = net.input
    for _ in range(4):
        y = net.layer_norm(x)
        up = net.mul(net.act(net.dense(y, 1024, bias=False), "Silu"), net.dense(y, 1024, bias=False))
        x = net.plus(x, net.dense(up, 512, bias=False))
    return net, net.finish(net.dense(net.layer_norm(x), 2000, bias=False))


def mixer(seed):
    net = sentences(seed, length=64, width=256)
    x = net.input
    for _ in range(4):
        y = net.transpose(net.layer_norm(x), [0, 2, 1])
        y = net.dense(net.act(net.dense(y, 128), "Gelu"), 64)
        x = net.plus(x, net.transpose(y, [0, 2, 1]))
        x = net.plus(x, net.dense(net.act(net.dense(net.layer_norm(x), 512), "Gelu"), 256))
    return net, net.finish(net.layer_norm(x))


def recurrent(seed, kind, layers=2, hidden=256):
    net = Network(seed, (24, 1, 128))
    x = net.input
    for _ in range(layers):
        x = net.recurrent(x, kind, hidden)
    return net, net.finish(net.dense(x, 1000))


def perceptron(seed, layers, width, rows=1, act="Relu"):
    net = Network(seed, (rows, width))
    x = net.input
    for _ in range(layers):
        x = net.act(net.dense(x, width), act)
    return net, net.finish(net.dense(x, 100))


def recommendation(seed):
    """Products of features with each other."""
    net = Network(seed, (64, 256))
    x = net.act(net.dense(net.act(net.dense(net.input, 512)), 512))
    y = net.reshape(x, [64, 16, 32])
    pairs = net.matmul(y, net.transpose(y, [0, 2, 1]))
    y = net.concat([x, net.reshape(pairs, [64, 256])])
    return net, net.finish(net.act(net.dense(net.act(net.dense(y, 512)), 1), "Sigmoid"))


def amplifying(seed, layers=12):
    """Normalisations take away what all channels have in common, a hundred times what they keep."""
    net = picture(seed, channels=32, side=28)
    x = net.input
    for _ in range(layers):
        depth = x.shape[1] * 9
        w = net.normal(32, x.shape[1], 3, 3, scale=depth**-0.5) + 2.0 / depth**0.5
        x = net.act(net.norm(net.conv(x, 32, weights=w)))
    return net, classify(net, x)


def nearly_singular(seed, layers=6, width=512):
    """Products by matrices of condition 1e4."""
    net = Network(seed, (64, width))
    x = net.input
    for _ in range(layers):
        u, _, v = np.linalg.svd(net.normal(width, width, scale=1))
        x = net.layer_norm(net.dense(x, width, weights=(u * np.logspace(1, -3, width)) @ v))
    return net, net.finish(x)


NETWORKS = {
    "resnet18": lambda s: resnet(s, basic, (2, 2, 2, 2), 32),
    "resnet50": lambda s: resnet(s, bottleneck, (3, 4, 6, 3)),
    "resnet101": lambda s: resnet(s, bottleneck, (3, 4, 23, 3)),
    "resnet50 of 7x7 first": lambda s: resnet(s, bottleneck, (3, 4, 6, 3), stem=7),
    "resnet50, large gains": lambda s: resnet(s, bottleneck, (3, 4, 6, 3), gain=3.0),
    "wide resnet50": lambda s: resnet(s, bottleneck, (2, 2, 2, 2), wide=2),
    "resnext50": lambda s: resnet(s, bottleneck, (3, 4, 6, 3), groups=8, wide=2),
    "resnext101": lambda s: resnet(s, bottleneck, (3, 4, 23, 3), groups=16, wide=2),
    "resnet20 of 32x32": cifar,
    "resnet, normalised first": preactivated,
    "3x3 of 16 channels": lambda s: plain(s, 16),
    "3x3 of 32 channels": lambda s: plain(s, 32),
    "3x3 of 64 channels": lambda s: plain(s, 64),
    "3x3 of 128 channels": lambda s: plain(s, 128),
    "vgg": vgg,
    "vgg without normalisation": lambda s: vgg(s, normalised=False),
    "densenet": densenet,
    "mobilenet v1": mobilenet_v1,
    "mobilenet v2": lambda s: mobilenet(s, "Relu6"),
    "mobilenet v3": lambda s: mobilenet(s, "HardSwish", squeezed=True, taps=5),
    "efficientnet": lambda s: mobilenet(s, "Silu", squeezed=True),
    "squeezenet": squeezenet,
    "inception": inception,
    "shufflenet": shufflenet,
    "convnext": convnext,
    "repvgg": repvgg,
    "u-net": unet,
    "dilated": dilated,
    "yolo": yolo,
    "superresolution": superresolution,
    "autoencoder": autoencoder,
    "amplifying": amplifying,
    "wavenet": wavenet,
    "speech": speech,
    "bert": bert,
    "minilm, batch of 4": lambda s: bert(s, layers=3, width=384, batch=4),
    "gpt": gpt,
    "translation": translation,
    "vit": vit,
    "llama, one row": lambda s: gated(s, 1),
    "llama, 64 rows": lambda s: gated(s, 64),
    "mlp-mixer": mixer,
    "lstm": lambda s: recurrent(s, "LSTM"),
    "gru": lambda s: recurrent(s, "GRU"),
    "rnn": lambda s: recurrent(s, "RNN"),
    "perceptron": lambda s: perceptron(s, 8, 512),
    "deep perceptron, 64 rows": lambda s: perceptron(s, 24, 256, 64, "Tanh"),
    "recommendation": recommendation,
    "nearly singular": nearly_singular,
}
