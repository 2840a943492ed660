package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitCompound(t *testing.T) {
	for _, tc := range []struct {
		args, sep string
		funs      int
		want      [][]string
	}{
		{", hi", ",", 2, [][]string{nil, {"hi"}}},
		{"a b , c", ",", 2, [][]string{{"a", "b"}, {"c"}}},
		{"a,b", ",", 2, [][]string{{"a"}, {"b"}}},
		{"a,b c", ",", 2, [][]string{{"a"}, {"b", "c"}}},
		{",", ",", 2, [][]string{nil, nil}},
		{"a,b + c,d", "+", 2, [][]string{{"a,b"}, {"c,d"}}},
		{"1 , 2 , 3", ",", 2, [][]string{{"1"}, {"2"}, {"3"}}},
		{"", ",", 2, [][]string{nil}},
	} {
		got := splitCompound(strings.Fields(tc.args), tc.sep, tc.funs)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: %s", tc.args, diff)
		}
	}
}

func TestSplitList(t *testing.T) {
	for in, want := range map[string][]string{"a,b": {"a", "b"}, "a, b": {"a", "b"}, "a b": {"a", "b"}, "a": {"a"}, "a,": {"a", ""}} {
		if diff := cmp.Diff(want, splitList(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestParseInput(t *testing.T) {
	got := parseInput([]string{"1", "a=2", "b=2", "20260101000000000000", "x: y"}, []string{"b"})
	want := []any{int64(1), "20260101000000000000", "x: y", map[string]any{"__kwarg__": true, "a": int64(2), "b": "2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := parseInput(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("no arguments are %#v, want an empty list", got)
	}
}

func TestShellLine(t *testing.T) {
	if got := shellLine("salt", []string{"*", "cmd.run", "it's"}); got != `salt '*' cmd.run 'it'\''s'` {
		t.Error(got)
	}
}
