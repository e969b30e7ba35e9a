"""What is believed: leaderboards, explanations, exports."""
