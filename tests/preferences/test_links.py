"""Laws of who wins: alike for close calls, symmetric, and different in the tails."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.preferences.links import LINKS, win_law


@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_even_handed_and_has_the_logistic_s_slope_at_zero(link: str) -> None:
    law, step = LINKS[link], 1e-5
    u = np.linspace(-6, 6, 41)
    np.testing.assert_allclose(law(u) + law(-u), 1.0, rtol=1e-14)
    assert float(law(0.0)) == 0.5
    assert (law(step) - law(-step)) / (2 * step) == pytest.approx(0.25, rel=1e-8)
    assert (np.diff(law(u)) > 0).all()


def test_upsets_are_rarest_under_the_probit_and_commonest_under_the_cauchit() -> None:
    probit, logistic, cauchit = (float(LINKS[name](-5.0)) for name in ("probit", "logistic", "cauchit"))
    assert probit < 0.15 * logistic
    assert cauchit > 10 * logistic


def test_flips_mix_the_law_with_its_reverse() -> None:
    u = np.linspace(-4, 4, 9)
    for link, law in LINKS.items():
        np.testing.assert_allclose(win_law(link, 0.3)(u), 0.7 * law(u) + 0.3 * law(-u), rtol=1e-12)
    assert win_law("logistic", 0.0) is LINKS["logistic"]
