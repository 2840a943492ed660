package trove

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettingFile: the files equal those of Trove's KeyValueCodec for PostgreSQL, except for texts that PostgreSQL
// would not read back.
func TestSettingFile(t *testing.T) {
	var f settingFile
	for _, c := range []struct {
		v    any
		want string
	}{
		{true, "true"}, {false, "false"}, {int64(5), "5"}, {"5", "5"}, {"-1", "-1"}, {"16MB", "16MB"}, {"5min", "'5min'"}, {"TRUE", "TRUE"}, {"", "''"},
		{"md5", "'md5'"}, {"it's", "'it''s'"}, {`a\b`, `'a\\b'`}, {"'quoted'", "'''quoted'''"}, {1.5, "'1.5'"}, {"# no comment", "'# no comment'"},
	} {
		k, err := f.option("name", c.v)
		if err != nil {
			t.Error(err)
			continue
		}
		line := f.merge("", []iniKey{k})
		if line != "name="+c.want {
			t.Errorf("%v is written as %s, not %s", c.v, line, c.want)
		}
		if got := f.value(line, "name"); got != k.value {
			t.Errorf("%v is read as %q", c.v, got)
		}
	}
	for name, v := range map[string]any{"a b": 1, "": 1, "a'": 1, "none": nil, "lines": "x\ny = 1"} {
		if _, err := f.option(name, v); err == nil {
			t.Errorf("%s is an option with %v", name, v)
		}
	}
	const file = "# comment\nport = 5432\t\t# (change requires restart)\n\twork_mem 4MB\nsearch_path = '\"$user\", it''s'  # path\nbroken = 'x\n!x\nport=5433\n"
	for name, want := range map[string]string{"port": "5433", "work_mem": "4MB", "search_path": `"$user", it's`, "broken": "", "none": ""} {
		if got := f.value(file, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if got := f.merge("a=1\r\nb='x y'", []iniKey{{"b", "z", true}, {"c", "5", true}}); got != "a=1\r\nb='z'\r\nc=5" {
		t.Errorf("%q", got)
	}
}

// TestPostgresNames holds the answers of trove.common.db.postgresql.models of Trove 18.
func TestPostgresNames(t *testing.T) {
	for name, want := range map[string]bool{"web": true, "a": false, "ab": true, "a b": true, "ab ": false, "ab\n": true, "a\n": false, "a\n\n": false,
		"é\"'": true, "\x00b": false, "a\U0001f600": true, "\U0001f600a": false, " b": true} {
		if got := isPostgresSchema(name); got != want {
			t.Errorf("database %q: %v", name, got)
		}
	}
}

func TestPostgresTexts(t *testing.T) {
	for text, want := range map[string]uint64{"0/0": 0, "0/3000148": 0x3000148, "16/B374D848": 0x16b374d848} {
		if got, ok := parseLSN(text); !ok || got != want {
			t.Errorf("%s: %x, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0", "x/1", "1/", "1/100000000"} {
		if _, ok := parseLSN(text); ok {
			t.Errorf("%q is a position", text)
		}
	}
	for _, password := range []string{"secret", "it's", `a\b c`, " password=x", "'"} {
		info := conninfo("host", "192.0.2.1", "port", "5432", "password", password)
		if rest, got := cutPassword(info); rest != "host=192.0.2.1 port=5432" || got != password {
			t.Errorf("%s: %s, %s", info, rest, got)
		}
	}
	got := readBackupFile("START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\nSTOP WAL LOCATION: 0/3000050 (file 000000010000000000000003)\n" +
		"CHECKPOINT LOCATION: 0/2000060\nBACKUP METHOD: streamed\nLABEL: full\n")
	if diff := cmp.Diff(map[string]string{"start_segment": "0/2000028", "start_wal_file": "000000010000000000000002", "stop_segment": "0/3000050",
		"stop_wal_file": "000000010000000000000003", "checkpoint_location": "0/2000060", "label": "full"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestArchive: old log is removed when the archive is too large; the log that the last backup needs is removed last.
func TestArchive(t *testing.T) {
	const segment = "00000001000000000000000"
	for _, c := range []struct {
		limit int64
		names string
		want  string
	}{
		{1000, "1 2 3 4", "1 2 3 4"},
		{350, "1 2 3 4", "2 3 4"},
		{200, "1 2 2.backup 3 4", "3 4"},
		{400, "1 2 3 3.backup 4", "2 3 3.backup 4"},
		{10, "1 2 3", "3"},
		{10, "", ""},
	} {
		h := newHost(t, map[string]any{"datastore_manager": "postgresql"})
		s, err := readSettings(h.env.Opts()["trove"])
		if err != nil {
			t.Fatal(err)
		}
		p := &postgresServer{guest: &guest{settings: s, c: h.reg.NewCall(h.env, "trove.rpc_ping", "", nil)}}
		dir := h.env.Path(p.archiveDir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(c.names) {
			if err := os.WriteFile(filepath.Join(dir, segment+strings.Replace(name, ".", ".00000028.", 1)), make([]byte, 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.cleanArchive(c.limit); err != nil {
			t.Fatal(err)
		}
		left, err := p.archived()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range left {
			got = append(got, strings.Replace(strings.TrimPrefix(name, segment), ".00000028.", ".", 1))
		}
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%q with %d bytes: %q, not %q", c.names, c.limit, got, want)
		}
	}
}
