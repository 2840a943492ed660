package cfn

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

var update = flag.Bool("update", false, "write the golden files")

// testHost is the host for all golden files.
var testHost = Host{Family: "Debian", Dir: "/", Home: "/root"}

func metadataOf(t *testing.T, text string) any {
	t.Helper()
	v, err := pyjson.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCompileGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Compile(metadataOf(t, string(b)), "", testHost)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.SLS()
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range c.Warnings {
				got += "# warning: " + w + "\n"
			}
			golden := strings.TrimSuffix(name, ".json") + ".sls"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestCompileNamesThePlaceOfBadValues(t *testing.T) {
	for _, tc := range []struct{ name, config, want string }{
		{"section", `{"files": []}`, `config.files must be a map, not a list`},
		{"config", `[]`, `config must be a map, not a list`},
		{"entry", `{"files": {"/a.b": "x"}}`, `config.files."/a.b" must be a map, not a text`},
		{"no content", `{"files": {"/a": {}}}`, `config.files./a needs content or source`},
		{"relative", `{"files": {"a": {"content": ""}}}`, `config.files.a must be an absolute path`},
		{"mode", `{"files": {"/a": {"content": "", "mode": "9"}}}`, `config.files./a.mode must be octal digits, not "9"`},
		{"mode kind", `{"files": {"/a": {"content": "", "mode": ["0644"]}}}`, `config.files./a.mode must be a text, not a list`},
		{"device", `{"files": {"/a": {"content": "", "mode": "060644"}}}`, `config.files./a.mode is of a kind of file that cannot be made: "060644"`},
		{"base64", `{"files": {"/a": {"content": "?", "encoding": "base64"}}}`, `config.files./a.content is not base64: illegal base64 data at input byte 0`},
		{"encoding", `{"files": {"/a": {"content": "", "encoding": "rot13"}}}`, `config.files./a.encoding must be plain or base64, not "rot13"`},
		{"content", `{"files": {"/a": {"content": null}}}`, `config.files./a.content must be a text or a map, not null`},
		{"uid", `{"users": {"u": {"uid": "x"}}}`, `config.users.u.uid must be a number, not "x"`},
		{"gid", `{"groups": {"g": {"gid": true}}}`, `config.groups.g.gid must be a number, not true or false`},
		{"groups of a user", `{"users": {"u": {"groups": [["x"]]}}}`, `config.users.u.groups[0] must be a text, not a list`},
		{"command", `{"commands": {"c": {}}}`, `config.commands.c needs a command`},
		{"command kind", `{"commands": {"c": {"command": {}}}}`, `config.commands.c.command must be a text, not a map`},
		{"empty command", `{"commands": {"c": {"command": []}}}`, `config.commands.c.command must not be empty`},
		{"env", `{"commands": {"c": {"command": "x", "env": {"A=": "b"}}}}`, `config.commands.c.env.A= is not the name of an environment variable`},
		{"source", `{"sources": {"/a": "http://h/a.rar"}}`, `config.sources./a must be a tar, tar+gzip, tar+bzip2, tar+xz or zip archive` +
			` or a .gz or .bz2 file, by its name "http://h/a.rar"`},
		{"family", `{"packages": {"yum": {"httpd": []}}}`, `config.packages.yum cannot be applied: this host is of the family Debian, which has no yum`},
		{"version", `{"packages": {"apt": {"x": {"y": 1}}}}`, `config.packages.apt.x must be a list of texts, not a map`},
		{"service", `{"services": {"systemd": {"s": {"enabled": [1]}}}}`, `config.services.systemd.s.enabled must be true or false, not a list`},
		{"two", `{"users": {"u": {"uid": "x"}}, "files": {"a": {}}}`, `config.users.u.uid must be a number, not "x"; config.files.a must be an absolute path`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Compile(metadataOf(t, `{"AWS::CloudFormation::Init": {"config": `+tc.config+`}}`), "", testHost)
			if err == nil || err.Error() != "cannot use the metadata: "+tc.want {
				t.Fatalf("got  %v\nwant cannot use the metadata: %s", err, tc.want)
			}
			if doc := new(DocumentError); !errors.As(err, &doc) {
				t.Errorf("%T has no DocumentError", err)
			}
		})
	}
}

func TestCompileNamesWhatConfigSetsLack(t *testing.T) {
	const sets = `{"AWS::CloudFormation::Init": {"configSets": {"a": ["x"], "b": [{"ConfigSet": "none"}], "c": [{"ConfigSet": "c"}], "d": [],
		"e": [{"x": "y"}], "f": "x", "g": ["gone"]}, "x": {}}}`
	for _, tc := range []struct{ name, document, sets, want string }{
		{"no key", `{}`, "", `the metadata has no AWS::CloudFormation::Init`},
		{"empty", `{"AWS::CloudFormation::Init": {}}`, "", `the metadata has no AWS::CloudFormation::Init`},
		{"a list", `{"AWS::CloudFormation::Init": [1]}`, "", `AWS::CloudFormation::Init must be a map, not a list`},
		{"no config", `{"AWS::CloudFormation::Init": {"x": {}}}`, "", `the metadata has no configuration "config"; configSets or -c may have to name another one`},
		{"no sets", `{"AWS::CloudFormation::Init": {"config": {}}}`, "a", `configSets "a" are asked for, but the metadata has no configSets`},
		{"no default", sets, "", `configSets has no set named default; name one with -c`},
		{"unknown set", sets, "a, z", `configSets has no set "z", which is asked for`},
		{"unknown reference", sets, "b", `configSets.b[0].ConfigSet names the set "none", which configSets does not have`},
		{"itself", sets, "c", `configSets.c names sets that name each other more than 32 deep`},
		{"empty set", sets, "d", `configSets "d" name no configuration`},
		{"odd map", sets, "e", `configSets.e[0] must be the name of a configuration or {"ConfigSet": name}`},
		{"a text", sets, "f", `configSets.f must be a list, not a text`},
		{"missing configuration", sets, "g", `the metadata has no configuration "gone"; configSets or -c may have to name another one`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Compile(metadataOf(t, tc.document), tc.sets, testHost)
			if err == nil || err.Error() != tc.want {
				t.Fatalf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// FuzzCompile checks that no metadata causes a panic, and that compiled metadata has one state per step.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := pyjson.ParseObject(b)
		if err != nil {
			return
		}
		c, err := Compile(v, "", testHost)
		if err != nil {
			return
		}
		if c.High.Len() != len(c.Steps) {
			t.Errorf("%d states for %d steps", c.High.Len(), len(c.Steps))
		}
		if _, err := c.SLS(); err != nil {
			t.Error(err)
		}
	})
}
