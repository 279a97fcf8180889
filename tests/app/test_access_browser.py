"""What everybody needs of the page, checked in a browser: contrast, labels and names on every tab (axe-core), the order
of things on a phone, and models that cannot be chosen.
"""

import pytest
from visitor import faults_found, generate

TABS = ("Image", "Edit", "Compare", "Text", "Tokens", "About")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_tab_can_be_seen_and_named(visit, axe, scheme):
    page = visit(color_scheme=scheme, reduced_motion="reduce")
    page.add_script_tag(path=axe)
    generate(page)
    faults = {}
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_timeout(400)
        if tab == "Edit":
            page.locator("#edit-take").click()
            page.wait_for_selector("#edit-painter .painter[data-state=ready]")
        if tab == "Compare":
            page.locator("#compare-generate").click()
            page.wait_for_selector(".compare[data-state=done]", timeout=60_000)
        if tab == "Tokens":
            page.locator("#tokens-current").click()
            page.wait_for_selector(".tokens[data-state=done]")
        for fold in page.locator("button.label-wrap:not(.open)").locator("visible=true").all()[::-1]:
            fold.click()
        page.wait_for_timeout(400)
        faults[tab] = faults_found(page)
    assert not any(faults.values()), "\n".join(f"{tab}: {one}" for tab, many in faults.items() for one in many)


def test_on_a_phone_the_class_comes_before_the_stage_and_both_are_on_the_first_screen(visit):
    page = visit(width=390, height=844, has_touch=True)
    for tab in ("Image", "Compare", "Edit"):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.locator(f"#{tab.lower()}-class input").wait_for()
        box = page.locator(f"#{tab.lower()}-class input").bounding_box()
        stage = page.locator(f"#{tab.lower()}-stage").bounding_box()
        assert box["y"] + box["height"] <= stage["y"] + 1, tab
        assert stage["y"] < 300, f"{tab}: the stage begins too far down"
        style = page.locator(f"#{tab.lower()}-style").bounding_box()
        assert style["y"] >= stage["y"] + stage["height"] - 1, f"{tab}: other controls come after the stage"


def test_a_model_that_is_not_here_is_grey_with_its_reason_and_cannot_be_chosen(browser, with_absent):
    page = browser.new_context().new_page()
    page.goto(with_absent.url)
    page.get_by_role("button", name="Generate", exact=True).wait_for()
    menu = page.locator("#image-model input")
    menu.click()
    far = page.get_by_role("option", name="Far away 256")
    far.wait_for()
    page.wait_for_function("() => document.querySelector('#image-model [data-absent]')")
    assert far.get_attribute("aria-disabled") == "true"
    shown = far.evaluate("(option) => getComputedStyle(option, '::after').content")
    assert shown == '"not on this machine: at least 2.3 GB to download"'
    far.click(force=True)
    assert menu.input_value() == "Drawn faces 64"
    for _ in range(2):  # where the arrow keys begin depends on what was pointed at before
        menu.press("ArrowDown")
        page.wait_for_timeout(300)
        if page.locator("#image-model .active[data-absent]").count():
            break
    assert page.locator("#image-model .active[data-absent]").count() == 1
    menu.press("Enter")
    menu.press("Escape")
    assert menu.input_value() == "Drawn faces 64"
    generate(page)
    page.get_by_role("tab", name="About").click()
    page.get_by_text("Not on this machine: at least 2.3 GB to download.").wait_for()
