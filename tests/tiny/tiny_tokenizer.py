"""A tiny CLIP tokenizer that is the same in every process; the learner settles its ties in another order each time."""

import json

from transformers import CLIPTokenizer

END = "</w>"


def tokenizer(texts: list[str], context: int) -> CLIPTokenizer:
    """Every letter, and a token for each word of the texts, which grows from left to right."""
    learned = CLIPTokenizer(model_max_length=context).train_new_from_iterator(texts, vocab_size=300, show_progress=False)
    vocabulary = json.loads(learned.backend_tokenizer.to_str())["model"]["vocab"]
    letters = sorted(token for token in vocabulary if len(token.removesuffix(END)) == 1)
    merges = []
    for word in sorted({word for text in texts for word in text.split()}):
        parts = [*word[:-1], word[-1] + END]
        merges += [("".join(parts[:number]), parts[number]) for number in range(1, len(parts))]
    merges = list(dict.fromkeys(merges))
    tokens = [learned.bos_token, learned.eos_token, *letters, *dict.fromkeys(map("".join, merges))]
    return CLIPTokenizer({token: number for number, token in enumerate(tokens)}, merges, model_max_length=context)
