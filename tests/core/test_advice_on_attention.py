"""What is advised where flex_attention refuses what it is given; each message is one that torch 2.6, 2.8, 2.11 or 2.13 printed."""

import pytest

from tests.core.test_graph_breaks import findings

CALLED = """\
Traceback (most recent call last):
  File "/srv/model.py", line 40, in <module>
    y = attend(q, k, v, block_mask)
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 749, in compile_wrapper
    return fn(*args, **kwargs)
  File "/venv/lib/python3.11/site-packages/torch/nn/attention/flex_attention.py", line 1364, in flex_attention
    raise error
"""
CREATED = """\
Traceback (most recent call last):
  File "/srv/model.py", line 33, in <module>
    block_mask = create_block_mask(causal, None, None, 256, 256)
  File "/venv/lib/python3.11/site-packages/torch/nn/attention/flex_attention.py", line 1934, in create_block_mask
    mask_tensor = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
  File "/srv/model.py", line 30, in causal
    if q >= k:
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/_trace_wrapped_higher_order_op.py", line 164, in __torch_function__
    return func(*args, **(kwargs or {}))
"""
LENGTHS = "block_mask was created for block_mask.shape=(1, 1, 128, 128) but got q_len=256 and kv_len=256. As the block mask"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (
            CALLED
            + f"ValueError: {LENGTHS} was created for a smaller length than you're using it for, you likely need to create a new block mask.\n",
            "block_mask_of_length",
        ),
        (CALLED + "RuntimeError: Cannot use mask_mod from a sliced BlockMask\n", "mask_mod_of_whole_mask"),
        (
            CALLED + "NotImplementedError: FlexAttention does not support backward on CPU. Please set the input requires_grad to False.\n",
            "attention_without_gradients",
        ),
        (
            "InductorError: LoweringException: NotImplementedError: torch.compile on CPU only supports inference and `return_lse` is not\n",
            "attention_without_gradients",
        ),
        (
            CALLED
            + "ValueError: Expected query, key, and value to have the same dtype, but got query.dtype: torch.bfloat16, key.dtype: torch.float32, "
            "and value.dtype: torch.bfloat16 instead.\n",
            "attention_in_one_dtype",
        ),
        (
            "InductorError: LoweringException: NotImplementedError: `torch.float` and `torch.bfloat16` are supported in FlexAttention for CPU\n",
            "attention_in_one_dtype",
        ),
        (
            CALLED + "ValueError: Expect query and key/value to have the same number of heads but got Hq=8 and Hkv=2.\n",
            "attention_shapes",
        ),
        (CALLED + "NotImplementedError: NYI: query, key, and value must be 4D tensors\n", "attention_shapes"),
        (
            "LoweringException: NotImplementedError: NYI: embedding dimension of the query, key, and value must be at least 16\n",
            "pad_head_dimension",
        ),
        (
            "LoweringException: ValueError: Number of shared query heads sharing the same KV head must be power of 2. \n",
            "repeat_heads",
        ),
        (
            CREATED + "RuntimeError: vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow."
            "please shout over at https://github.com/pytorch/functorch/issues/257 .\n",
            "mask_mod_in_tensors",
        ),
        (
            CREATED + "RuntimeError: vmap: It looks like you're calling .item() on a Tensor. please try "
            "to rewrite what you're doing with other operations.\n",
            "mask_mod_in_tensors",
        ),
    ],
)
def test_the_first_advice_where_flex_attention_refuses(log: str, first: str) -> None:
    """Each was carried out on the CPU and took the error away, but for the two that only a GPU's kernels raise."""
    (finding,) = findings(log)
    assert finding.kind == "compile_error"
    assert finding.advice[0].name == first
    assert "***" not in finding.advice[0].apply  # "key = …" reads like a secret


def test_an_error_of_another_attention_is_no_failed_compilation() -> None:
    """The C++ of scaled_dot_product_attention names dtypes in its own way."""
    log = "RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::BFloat16 instead.\n"
    assert not findings(log)
