"""The list of kernels to compile, which the other files of this folder fill."""

CASES = {}
GRID_1D = "[cdiv(M,{BM})*cdiv(N,{BN}),1,1]"
GRID_2D = "[cdiv(M,{BM}),cdiv(N,{BN}),1]"
MFMA16 = {"options": {"matrix_instr_nonkdim": 16}}


def case(name, fn, signature, constants, grid, warps=4, stages=2, buffers=True, options=None, requires="", note=""):
    """signature: 'arg:type arg:type', in kernel order, of the arguments that are not constants; a type that ends
    in '!' is declared a multiple of 16, as pointers always are. buffers: pointers are declared to reach less than
    2 GiB, which makes Triton use buffer instructions."""
    CASES[name] = dict(fn=fn, signature=dict(s.split(":") for s in signature.split()), constants=constants, grid=grid,
                       warps=warps, stages=stages, buffers=buffers, options=options or {}, requires=requires, note=note)
