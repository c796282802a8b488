"""``python -m kuberay_op_submitter``."""

from kuberay_op_submitter.cli import main

main()
