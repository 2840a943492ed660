package slsutil

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/textwrap"
	"github.com/brine-salt/brine/modules"
)

// maxWidth bounds a banner, in characters.
const maxWidth = 10000

func banner(_ context.Context, c *modules.Call) (any, error) {
	width, err := c.Int("width")
	if err != nil {
		return nil, err
	}
	comment, border := c.Str("commentchar"), c.Str("borderchar")
	title, text := "THIS FILE IS MANAGED BY SALT - DO NOT EDIT",
		"The contents of this file are managed by Salt. Any changes to this file may be overwritten automatically and without warning."
	if c.Value("title") != nil {
		title = c.Str("title")
	}
	if c.Value("text") != nil {
		text = c.Str("text")
	}
	left, right := pytext.StripRight(comment), pytext.Strip(comment)
	inner := int(min(width, maxWidth)) - length(left) - 1 - length(right) - 1
	switch {
	case width > maxWidth:
		return nil, modules.Errorf("Width is too large to render banner")
	case inner <= 0:
		return nil, modules.Errorf("Width is too small to render banner")
	}
	n := int(width)
	first := ""
	if r, size := utf8.DecodeRuneInString(border); size > 0 {
		first = string(r)
	}
	edge := comment + strings.Repeat(first, max(0, n-length(left)-length(right))) + right
	spacer := comment + strings.Repeat(" ", max(0, n-2*length(comment))) + comment
	var block []string
	if c.Value("blockstart") != nil {
		block = append(block, c.Str("blockstart"))
	}
	block = append(block, edge, spacer)
	for _, line := range textwrap.Wrap(title, inner) {
		block = append(block, left+" "+center(line, inner)+" "+right)
	}
	block = append(block, spacer)
	for _, line := range textwrap.Wrap(text, inner) {
		block = append(block, left+" "+line+strings.Repeat(" ", max(0, inner-length(line)))+" "+right)
	}
	block = append(block, edge)
	if c.Value("blockend") != nil {
		block = append(block, c.Str("blockend"))
	}
	out := strings.Join(block, "\n")
	if c.Bool("newline") {
		out += "\n"
	}
	return out, nil
}

func length(s string) int { return utf8.RuneCountInString(s) }

// center implements Python's str.center.
func center(s string, width int) string {
	pad := width - length(s)
	if pad <= 0 {
		return s
	}
	left := pad/2 + (pad & width & 1)
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", pad-left)
}
