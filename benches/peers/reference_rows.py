"""Rows of one video by the usual Python libraries, to hold our encoders with real weights to:

    python reference_rows.py ENCODER WEIGHTS VIDEO FOLDER          writes FOLDER/VIDEO_NAME.npy
    cuemark features extract VIDEO --encoder ENCODER --weights WEIGHTS --out STORE
    cuemark features compare STORE FOLDER                          the cosine of every clip: 1.0000 is right

ENCODER is i3d, efficientnet-lite0, vgg16-fc6, vgg16-fc7, resnet50, resnet152 or clip; WEIGHTS is a file (for clip a folder). Needs
torch; torchvision for VGG and ResNet, transformers for CLIP; and the ffmpeg program, which is asked for the same frames as ours.
"""

import os
import subprocess
import sys

import numpy
import torch

import efficientnet_lite_torch
import i3d_torch

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
LITE = ([127 / 255] * 3, [128 / 255] * 3)

# Frames a second, frames of a row, shorter side, filter, pixels, how the rows of frames are pooled.
RECIPES = {
    "i3d": (24, 24, 256, "bilinear", None, None),
    "efficientnet-lite0": (1, 1, 256, "bicubic", LITE, "mean"),
    "vgg16-fc6": (5, 1, 256, "bilinear", IMAGENET, "mean"),
    "vgg16-fc7": (5, 1, 256, "bilinear", IMAGENET, "mean"),
    "resnet50": (1, 1, 256, "bilinear", IMAGENET, "max"),
    "resnet152": (4, 6, 256, "bilinear", IMAGENET, "max"),
    "clip": (0.5, 1, 224, "bicubic", CLIP, "mean"),
}


def frames(video, fps, short, filter):
    filters = (f"setpts=PTS-STARTPTS,fps=fps={fps}:round=up,scale=w='if(lt(iw,ih),{short},-2)':h='if(lt(iw,ih),-2,{short})':"
               f"flags={filter}+accurate_rnd+full_chroma_int,format=rgb24,crop=224:224")
    raw = subprocess.run(["ffmpeg", "-v", "error", "-i", video, "-map", "0:v:0", "-vf", filters, "-pix_fmt", "rgb24",
                          "-f", "rawvideo", "-"], check=True, capture_output=True).stdout
    return numpy.frombuffer(raw, numpy.uint8).reshape(-1, 224, 224, 3)


def network(name, weights):
    if name == "i3d":
        net = i3d_torch.I3D(i3d_torch.load(weights))
        return lambda x: net(x)[0]
    if name == "efficientnet-lite0":
        return efficientnet_lite_torch.EfficientNetLite(weights)
    if name == "clip":
        from transformers import CLIPVisionModelWithProjection
        net = CLIPVisionModelWithProjection.from_pretrained(weights).eval()
        return lambda x: net(x).image_embeds
    import torchvision
    state = torch.load(weights, map_location="cpu", weights_only=True)
    net = getattr(torchvision.models, name.split("-")[0])()
    net.load_state_dict(state)
    net.eval()
    if name.startswith("resnet"):
        net.fc = torch.nn.Identity()
        return net
    last = 2 if name.endswith("fc6") else 5
    return lambda x: net.classifier[:last](net.avgpool(net.features(x)).flatten(1))


def main():
    name, weights, video, folder = sys.argv[1:]
    fps, count, short, filter, pixels, pool = RECIPES[name]
    rgb = frames(video, fps, short, filter)
    missing = -len(rgb) % count
    rgb = numpy.concatenate([rgb, rgb[-1:].repeat(missing, 0)])
    net, rows = network(name, weights), []
    with torch.inference_mode():
        for clip in rgb.reshape(-1, count, 224, 224, 3):
            x = torch.from_numpy(clip.astype(numpy.float32) / 255)
            if pixels is None:
                rows.append(net((x * 2 - 1).permute(3, 0, 1, 2)[None])[0])
            else:
                mean, deviation = torch.tensor(pixels[0]), torch.tensor(pixels[1])
                made = net(((x - mean) / deviation).permute(0, 3, 1, 2))
                rows.append(made.mean(0) if pool == "mean" else made.amax(0))
    os.makedirs(folder, exist_ok=True)
    stem = os.path.splitext(os.path.basename(video))[0]
    numpy.save(os.path.join(folder, f"{stem}.npy"), torch.stack(rows).numpy())


main()
