package shlex

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplit expects the results of Python 3.11.
func TestSplit(t *testing.T) {
	cases := map[string]struct {
		want []string
		err  error
	}{
		``:              {nil, nil},
		`a  b	c`:        {[]string{"a", "b", "c"}, nil},
		`'a b' "c d"`:   {[]string{"a b", "c d"}, nil},
		`a'b'"c"`:       {[]string{"abc"}, nil},
		`''`:            {[]string{""}, nil},
		`a\ b \"`:       {[]string{"a b", `"`}, nil},
		`"a\"b\\c\d\$"`: {[]string{`a"b\c\d\$`}, nil},
		`'a\'b`:         {[]string{`a\b`}, nil},
		`# no comment`:  {[]string{"#", "no", "comment"}, nil},
		`$HOME *;|`:     {[]string{"$HOME", "*;|"}, nil},
		"é \u00a0":      {[]string{"é", "\u00a0"}, nil},
		`"open`:         {nil, ErrQuote},
		`it's`:          {nil, ErrQuote},
		`end\`:          {nil, ErrEscape},
	}
	for in, c := range cases {
		got, err := Split(in)
		if diff := cmp.Diff(c.want, got); diff != "" || err != c.err {
			t.Errorf("%q: %v %s", in, err, diff)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a/b-c=1": "a/b-c=1", "a b": "'a b'", "it's": `'it'"'"'s'`, "é": "'é'"} {
		if got := Quote(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
		if back, err := Split(Quote(in)); err != nil || len(back) != 1 || back[0] != in {
			t.Errorf("%q reads back as %q, %v", in, back, err)
		}
	}
}

func FuzzQuoteReadsBack(f *testing.F) {
	f.Add("it's \\ \"x\"\n")
	f.Fuzz(func(t *testing.T, s string) {
		if back, err := Split(Quote(s)); err != nil || len(back) != 1 || back[0] != s {
			t.Errorf("%q reads back as %q, %v", s, back, err)
		}
	})
}
