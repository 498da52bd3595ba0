"""Parts a dataset so that location bias shows: splits.py NAME ROOT OUT"""

import sys

import cuemark


def main(name: str, root: str, out: str) -> None:
    dataset = cuemark.load(name, root)
    made = cuemark.split.cd(dataset, ood_share=0.2, seed=0)
    manifest = made.write(out)
    print(manifest["protocol"], {part: len(made[part]) for part in made})
    for part in ("test-iid", "test-ood"):
        guess = cuemark.baseline("bias-mode", made[part], train=made["train"])
        reached = cuemark.evaluate(made[part], guess, metrics="R@1,IoU=0.5").metrics
        print(part, "guessing reaches", reached)


if __name__ == "__main__":
    main(*sys.argv[1:4])
