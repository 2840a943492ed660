package master_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
)

// optionKeys returns the configuration keys of the options that are plain values, each with its type.
func optionKeys(t reflect.Type, prefix string) (out []string) {
	for f := range t.Fields() {
		key := prefix + strings.ToLower(f.Name)
		switch kind := f.Type.Kind(); {
		case f.Type == reflect.TypeFor[time.Duration]():
			out = append(out, key+" duration")
		case kind == reflect.Struct:
			out = append(out, optionKeys(f.Type, key+".")...)
		case kind == reflect.Bool, kind == reflect.Int, kind == reflect.Int64, kind == reflect.Float64,
			kind == reflect.String, f.Type == reflect.TypeFor[[]string]():
			out = append(out, key+" "+f.Type.String())
		}
	}
	return out
}

// TestOptionKeys compares the keys of Options with testdata/options.txt. Programs that embed a master use these keys
// in the configuration files that viper reads, so removing a key breaks such files. A new key must be added to the
// list.
func TestOptionKeys(t *testing.T) {
	want, err := os.ReadFile("testdata/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(optionKeys(reflect.TypeFor[master.Options](), ""), "\n") + "\n"
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Error(d)
	}
}
