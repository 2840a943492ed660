package mysql

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestFormat(t *testing.T) {
	got := format("SELECT %(a)s, %(b)s, %(c)s LIKE 'x%%'", map[string]any{"a": `it's "\`, "b": int64(5), "c": nil})
	if want := `SELECT 'it\'s \"\\', 5, NULL LIKE 'x%'`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestWithoutComments(t *testing.T) {
	got := withoutComments("-- one\nSELECT 1; # two\n/* three\n */SELECT '-- no', \"# no\", 5--3;\nx /*! kept */ --")
	if want := "\nSELECT 1; \n SELECT '-- no', \"# no\", 5--3;\nx /*! kept */ "; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestTokens(t *testing.T) {
	got, err := tokens("GRANT SELECT, CREATE TEMPORARY TABLES, INSERT (a, b) ON `web`.`books` TO 'ada'@'local host'", nil)
	want := grant{user: "ada", host: "local host", database: "`web`.`books`", list: []string{"SELECT", "CREATE TEMPORARY TABLES", "INSERT", "INSERT.a", "INSERT.b"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(grant{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := tokens("GRANT `", nil); err == nil {
		t.Error("an open quote is no error")
	}
}
