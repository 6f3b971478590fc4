"""Files from strangers, made by the hundred thousand: what reads them must read them or say what is wrong.

python -m tests.fuzz --cases 100000     every format, kind of file and model folder in turn; see docs/security.md
"""
