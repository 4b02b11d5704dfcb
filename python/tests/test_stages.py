"""The stages' tables in Python: complete, and good to read."""

import pydoc
import re

import pytest

import sluice
import tools


def test_all_stages_are_there():
    names = re.findall(r"^ *([a-z]\w*) ", tools.sluice_whole("stages").text, re.M)
    assert {stage.name for stage in sluice.stages} <= set(names) and len(sluice.stages) > 20
    assert all(stage.summary and stage.formula for stage in sluice.stages)


def test_help_reads_well():
    text = pydoc.plain(pydoc.render_doc(sluice.stage("gaussian")))
    for words in ("gaussian=sigma:[radius]:[border]: Gaussian blur", "sigma: 0.1 .. 250 pixels, required",
                  "border: replicate | zero | reflect | mirror | wrap, default replicate"):
        assert words in text, text


def test_options():
    sigma = sluice.stage("gaussian").option("sigma")
    assert (sigma.type, sigma.unit, sigma.min, sigma.required) == ("real", "pixels", 0.1, True)
    border = sluice.stage("sobel").option("border")
    assert border.choices[0] == border.default == "replicate" and "wrap" in border.choices
    for stage in sluice.stages:
        for option in stage.options:
            assert option.help and option.values and str(option)
    with pytest.raises(sluice.UsageError, match="'sgma', but: sigma, radius, border"):
        sluice.stage("gaussian").option("sgma")
    with pytest.raises(sluice.UsageError, match="there is no stage 'gausian', but: .*gaussian"):
        sluice.stage("gausian")


def test_defaults_are_those_of_chains():
    """A stage whose options are all written out is the stage without any."""
    for stage in sluice.stages:
        given = [o for o in stage.options if o.default is not None]
        if not given or any(o.required for o in stage.options) or stage.name in ("stats", "match", "tee"):
            continue
        chain = stage.name + "=" + ":".join(f"{o.name}={o.default}" for o in given)
        assert sluice.Filter(chain).plan == sluice.Filter(stage.name).plan


def test_former_names():
    for stage in sluice.stages:
        if stage.alias:
            assert sluice.stage(stage.alias) is stage
