"""One object for a stream of samples and labels of any kind, alone or in the tools of others."""

from bcl.online.classifier import OnlineClassifier

__all__ = ["OnlineClassifier"]
