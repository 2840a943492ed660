package output

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/payload"
)

func TestUnknownOutputterShowsNested(t *testing.T) {
	got, err := Render("nonsense", map[string]any{"local": true}, Options{})
	if !errors.Is(err, ErrUnknown) || got != "local:\n    True" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOrderedMappingsKeepTheirOrder(t *testing.T) {
	v := payload.OrderedMap{{Key: "z", Value: int64(1)}, {Key: "a", Value: payload.OrderedMap{{Key: "y", Value: nil}, {Key: "b", Value: "t"}}}}
	for out, want := range map[string]string{
		"txt":                 "z: 1\na: {'y': None, 'b': 't'}",
		"newline_values_only": "1\n{'y': None, 'b': 't'}",
	} {
		if got, err := Render(out, v, Options{}); err != nil || got != want {
			t.Errorf("%s: got %q, %v", out, got, err)
		}
	}
	for keep, want := range map[bool]string{
		false: "a:\n    ----------\n    b:\n        t\n    y:\n        None\nz:\n    1",
		true:  "z:\n    1\na:\n    ----------\n    y:\n        None\n    b:\n        t",
	} {
		if got, err := Render("nested", v, Options{KeepOrder: keep}); err != nil || got != want {
			t.Errorf("nested, %v: got %q, %v", keep, got, err)
		}
	}
	one := -1
	if got, err := Render("json", v, Options{Indent: &one}); err != nil || got != `{"z": 1, "a": {"y": null, "b": "t"}}` {
		t.Errorf("json: got %q, %v", got, err)
	}
}

func TestEveryNameRenders(t *testing.T) {
	for _, name := range Names() {
		if _, err := Render(name, map[string]any{"local": map[string]any{"a": []any{int64(1)}}}, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheme(t *testing.T) {
	got, err := Render("nested", "x", Options{Color: true, Theme: map[string]string{"GREEN": "4;35"}})
	if want := "\x1b[4;35mx\x1b[0;0m"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestMissingOptions: options that are not set have Salt's defaults, which are the zero value of Options.
func TestMissingOptions(t *testing.T) {
	if d := cmp.Diff(Options{}, OptionsFrom(map[string]any{}, Options{})); d != "" {
		t.Error(d)
	}
	other := map[string]any{"strip_colors": false, "state_verbose": false, "state_output_profile": false, "state_output_diff": true,
		"state_output_pct": true, "state_tabular": true, "state_compress_ids": true}
	want := Options{KeepEscapes: true, StateQuiet: true, NoStateProfile: true, StateDiff: true, StatePercent: true,
		StateTabular: true, CompressIDs: true}
	if d := cmp.Diff(want, OptionsFrom(other, Options{})); d != "" {
		t.Error(d)
	}
}
