"""Predictive entropy search with constraints: how many bits each measurement yields about x*."""

from calamint.acquire.pesc.pesc import PESC, Information, Report

__all__ = ["PESC", "Information", "Report"]
