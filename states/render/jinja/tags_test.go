package jinja

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTags checks that Tags finds every tag at its place in the text, with the lexer that also reads templates for
// rendering.
func TestTags(t *testing.T) {
	for text, want := range map[string]string{
		"a {{ b }} c":                                    "variable b {{ b }}",
		"{% if x == '%}' -%}\n  y\n{%- endif %}":         "block if {% if x == '%}' -%} | block endif {%- endif %}",
		"{% set x = 1 %}{% set y %}1{% endset %}":        "block set= {% set x = 1 %} | block set {% set y %} | block endset {% endset %}",
		"{% set y | replace(old='a') %}1{% endset %}":    "block set {% set y | replace(old='a') %} | block endset {% endset %}",
		"{# {{ x }} #}\n{{ {'a': '}}'} }}":               "comment  {# {{ x }} #} | variable  {{ {'a': '}}'} }}",
		"{% raw %}{{ x }}{% if %}{% endraw %}{{ y }}":    "raw raw {% raw %} | raw endraw {% endraw %} | variable y {{ y }}",
		"{%- raw -%}\n  {{ x }}\n{%- endraw -%}\n {{y}}": "raw raw {%- raw -%} | raw endraw {%- endraw -%} | variable y {{y}}",
		"plain":                   "",
		"{{ a":                    "variable a {{ a",
		"{{ a }} {# no end":       "variable a {{ a }} | comment  {# no end",
		"{{ a }} {{ ? }} {{ b }}": "variable a {{ a }} | variable  {{ ? }} {{ b }}",
	} {
		tags, _ := DefaultSyntax().Tags(text)
		var got []string
		for _, tag := range tags {
			name := tag.Name
			if tag.Assigns {
				name += "="
			}
			got = append(got, string(tag.Kind)+" "+name+" "+text[tag.Start:tag.End])
		}
		if diff := cmp.Diff(want, strings.Join(got, " | ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
