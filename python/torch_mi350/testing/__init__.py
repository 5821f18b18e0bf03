"""What tests, benchmarks and the doctor share: references, cases, comparison, guarded buffers.

Nothing here names a device: every function takes one (`cdna` on any machine, `cuda` on an MI350).
"""
