"""Engines that answer prompts, and what is asked of them."""
