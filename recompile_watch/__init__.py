"""recompile-watch: understands what a program that uses ``torch.compile`` prints, and says what to change."""

__version__ = "0.1.0"
