package configparser

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse("# c\n[a]\nName = x: y\nlist=1\n  2\n\n  3\n; c\nb:z\n\n[b]\n", "f", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Section{{"a", []Option{{"name", "x: y"}, {"list", "1\n2\n\n3"}, {"b", "z"}}}, {"b", nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x=1\n": "MissingSectionHeaderError", "[a]\nx=1\nX=2\n": "DuplicateOptionError", "[a]\n[a]\n": "DuplicateSectionError",
		"[a]\nnothing\n": "ParsingError",
	} {
		_, err := Parse(text, "f", true)
		var e *Error
		if !errors.As(err, &e) || e.Type != want {
			t.Errorf("%q: %v, want a %s", text, err, want)
		}
	}
	if list, err := Parse("[a]\nx=1\nx=2\n[a]\ny=3\n", "f", false); err != nil || len(list) != 1 || len(list[0].Options) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[a]\nb=c\n d\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text, "f", false)
		if err != nil {
			return
		}
		size := 0
		for _, s := range list {
			for _, o := range s.Options {
				size += len(o.Name) + len(o.Value)
			}
		}
		if size > 4*len(text) {
			t.Errorf("%d bytes out of %d", size, len(text))
		}
	})
}
