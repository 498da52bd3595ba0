"""Asks an index in a sentence: search.py INDEX SENTENCE"""

import sys

import cuemark


def main(path: str, sentence: str) -> None:
    index = cuemark.Index(path)
    answers = index.search(sentence, top=5)
    print(f"{len(answers)} good answers in {len(index)} videos")
    for answer in answers:
        why = ", ".join(f"{word} {share:.0%}" for word, share in answer.words.items())
        how = f"{answer.probability:.0%} likely" if answers.calibrated else answer.strength
        print(f"{answer.video} {answer.start:.1f} – {answer.end:.1f} s, {how} ({why})")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except cuemark.CuemarkError as error:
        sys.exit(f"error: {error}")
