"""Look of the page: a Gradio theme that reads its colours from the variables in page.css, and the page's head."""

from pathlib import Path
from urllib.parse import quote

import gradio as gr

FOLDER = Path(__file__).parent
STYLES = ("page.css", "viewer.css", "history.css", "compare.css", "tokens.css", "painter.css", "text.css")
SANS = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28"><g fill="#5546e8">'
    '<rect x="1" y="1" width="8" height="8" rx="1.5"/><rect x="19" y="1" width="8" height="8" rx="1.5"/>'
    '<rect x="10" y="10" width="8" height="8" rx="1.5"/><rect x="1" y="19" width="8" height="8" rx="1.5"/></g>'
    '<g fill="#c9c3fa"><rect x="10" y="1" width="8" height="8" rx="1.5"/>'
    '<rect x="19" y="19" width="8" height="8" rx="1.5"/></g></svg>'
)

COLOURS = {
    "body_background_fill": "var(--page)",
    "body_text_color": "var(--ink)",
    "body_text_color_subdued": "var(--quiet)",
    "background_fill_primary": "var(--surface)",
    "background_fill_secondary": "var(--page)",
    "border_color_primary": "var(--line)",
    "border_color_accent": "var(--accent)",
    "color_accent_soft": "var(--accent-soft)",
    "link_text_color": "var(--accent-ink)",
    "link_text_color_hover": "var(--accent-ink)",
    "link_text_color_active": "var(--accent-ink)",
    "link_text_color_visited": "var(--accent-ink)",
    "block_background_fill": "transparent",
    "block_border_color": "transparent",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--ink)",
    "block_title_text_color": "var(--ink)",
    "block_info_text_color": "var(--quiet)",
    "panel_background_fill": "transparent",
    "panel_border_color": "transparent",
    "input_background_fill": "var(--surface)",
    "input_background_fill_focus": "var(--surface)",
    "input_border_color": "var(--line-strong)",
    "input_border_color_focus": "var(--accent)",
    "input_border_color_hover": "var(--quiet)",
    "input_placeholder_color": "var(--quiet)",
    "slider_color": "var(--accent)",
    "checkbox_background_color": "var(--surface)",
    "checkbox_background_color_selected": "var(--accent)",
    "checkbox_background_color_hover": "var(--surface)",
    "checkbox_background_color_focus": "var(--surface)",
    "checkbox_border_color": "var(--line-strong)",
    "checkbox_border_color_selected": "var(--accent)",
    "checkbox_border_color_hover": "var(--quiet)",
    "checkbox_border_color_focus": "var(--accent)",
    "checkbox_label_background_fill": "transparent",
    "checkbox_label_background_fill_hover": "transparent",
    "checkbox_label_background_fill_selected": "transparent",
    "checkbox_label_border_color": "transparent",
    "checkbox_label_text_color": "var(--ink)",
    "checkbox_label_text_color_selected": "var(--ink)",
    "button_primary_background_fill": "var(--accent)",
    "button_primary_background_fill_hover": "var(--accent-strong)",
    "button_primary_text_color": "var(--on-accent)",
    "button_primary_border_color": "transparent",
    "button_secondary_background_fill": "var(--surface)",
    "button_secondary_background_fill_hover": "var(--hover)",
    "button_secondary_text_color": "var(--ink)",
    "button_secondary_border_color": "var(--line-strong)",
    "error_background_fill": "var(--surface)",
    "error_border_color": "var(--fault)",
    "error_text_color": "var(--fault)",
    "error_icon_color": "var(--fault)",
    "loader_color": "var(--accent)",
    "stat_background_fill": "var(--accent)",
    "table_row_focus": "var(--accent-soft)",
}
SHAPES = {
    "block_border_width": "0px",
    "block_padding": "0px",
    "block_shadow": "none",
    "block_radius": "0px",
    "block_title_text_size": "14px",
    "block_title_text_weight": "600",
    "block_label_text_size": "14px",
    "block_info_text_size": "13px",
    "block_info_text_weight": "400",
    "layout_gap": "24px",
    "form_gap_width": "0px",
    "input_radius": "10px",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "input_border_width": "1px",
    "input_padding": "10px 12px",
    "input_text_size": "15px",
    "checkbox_shadow": "none",
    "checkbox_label_shadow": "none",
    "checkbox_label_text_size": "14px",
    "button_large_radius": "12px",
    "button_large_text_size": "16px",
    "button_large_text_weight": "600",
    "button_large_padding": "12px 20px",
    "button_small_radius": "8px",
    "button_small_text_size": "13px",
    "button_small_text_weight": "500",
    "button_primary_shadow": "none",
    "button_primary_shadow_hover": "none",
    "button_primary_shadow_active": "none",
    "button_secondary_shadow": "none",
    "button_secondary_shadow_hover": "none",
    "button_secondary_shadow_active": "none",
    "button_transform_hover": "none",
    "button_transform_active": "none",
}


def theme() -> gr.themes.Base:
    """The theme: system typefaces, one accent, no boxes; every colour is a variable, so dark mode is a block of CSS."""
    base = gr.themes.Base(primary_hue="indigo", secondary_hue="slate", neutral_hue="slate", font=SANS, font_mono=MONO)
    both = {**COLOURS, **{f"{name}_dark": value for name, value in COLOURS.items()}}
    return base.set(**both, **SHAPES)


def head() -> str:
    """Markup for the page's <head>: the style sheet and the small script that joins buttons and viewers."""
    css = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in STYLES)
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    return (
        f'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,{quote(ICON)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{css}\n</style>\n<script>\n{script}\n</script>"
    )
