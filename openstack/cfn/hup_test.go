package cfn

import (
	"slices"
	"testing"
	"time"

	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	goodMain = "[main]\nstack=st\ncredential-file=/etc/cfn/cfn-credentials\nregion=nova\ninterval=3\n"
	goodHook = "[reload]\ntriggers=post.update, post.add\npath=Resources.web.Metadata.AWS::CloudFormation::Init\n" +
		"action=echo %% %(runas)s %d 100%\nrunas=root\n"
)

func hupHost(t *testing.T, g *guest) *host {
	t.Helper()
	p := newProgram("cfn-hup", Env{Root: g.root})
	return &host{path: p.path}
}

func TestHupConfiguration(t *testing.T) {
	g := newGuest(t)
	g.write(t, hupFile, goodMain)
	g.write(t, credFile, "x")
	g.write(t, hooksFile, "[first]\ntriggers=post.update\npath=Resources.a.Metadata\naction=true\nrunas=nobody\n")
	g.write(t, hooksDir+"/b.conf", goodHook)
	c, err := hupHost(t, g).readHup(hooksDir)
	if err != nil {
		t.Fatal(err)
	}
	if c.stack != "st" || c.interval != 3*time.Minute || len(c.hooks) != 2 {
		t.Fatalf("%+v", c)
	}
	k := c.hooks[1]
	if k.resource != "web" || k.action != "echo % root %d 100%" || !slices.Equal(k.triggers, []string{"post.update", "post.add"}) ||
		!slices.Equal(k.part, []string{"AWS::CloudFormation::Init"}) {
		t.Errorf("%+v", k)
	}
}

func TestHupConfigurationThatIsWrong(t *testing.T) {
	for _, tc := range []struct{ name, main, hook, want string }{
		{"no hooks", goodMain, "", "no hook files found at /etc/cfn/hooks.conf or /etc/cfn/hooks.d"},
		{"no stack", "[main]\n", goodHook, `/etc/cfn/cfn-hup.conf: section "main" has no option "stack"`},
		{"no main", "[x]\n", goodHook, `/etc/cfn/cfn-hup.conf has no section main`},
		{"interval", goodMain[:len(goodMain)-2] + "0\n", goodHook, `/etc/cfn/cfn-hup.conf: interval must be minutes between 1 and 1440, not "0"`},
		{"no action", goodMain, "[h]\ntriggers=x\npath=Resources.a\nrunas=root\n", `/etc/cfn/hooks.d/h: section "h" has no option "action"`},
		{"path", goodMain, "[h]\ntriggers=x\npath=Resources\nrunas=root\naction=x\n",
			`/etc/cfn/hooks.d/h: path of section "h" must begin with Resources.<name>, not "Resources"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGuest(t)
			g.write(t, hupFile, tc.main)
			g.write(t, credFile, "x")
			if tc.hook != "" {
				g.write(t, hooksDir+"/h", tc.hook)
			}
			if _, err := hupHost(t, g).readHup(hooksDir); err == nil || err.Error() != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHookEvents(t *testing.T) {
	doc := func(text string) any {
		if text == "" {
			return nil
		}
		return metadataOf(t, text)
	}
	for _, tc := range []struct {
		name, part, last, now string
		want                  []string
	}{
		{"first", "", "", `{"a": 1}`, []string{"post.add", "post.update"}},
		{"same", "", `{"a": 1}`, `{"a": 1}`, nil},
		{"changed", "", `{"a": 1}`, `{"a": 2}`, []string{"post.update"}},
		{"other part", "a", `{"a": 1, "b": 1}`, `{"a": 1, "b": 2}`, nil},
		{"part added", "a", `{"b": 1}`, `{"a": 1, "b": 1}`, []string{"post.add", "post.update"}},
		{"part removed", "a", `{"a": 1, "b": 1}`, `{"b": 1}`, []string{"post.delete", "post.update"}},
		{"unknown part", "c", `{"a": 1}`, `{"a": 2}`, []string{"post.update"}},
		{"unknown part, same", "c", `{"a": 1}`, `{"a": 1}`, nil},
	} {
		k := hook{}
		if tc.part != "" {
			k.part = []string{tc.part}
		}
		a := &answer{metadata: doc(tc.now), last: doc(tc.last)}
		a.changed = a.last == nil || !pyobj.Equal(a.metadata, a.last)
		if got := k.event(a); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	v := metadataOf(t, `{"a.b": {"c": 7}}`)
	if got, ok := partOf(v, []string{"a", "b", "c"}); !ok || got != int64(7) {
		t.Errorf("names with dots: %v %v", got, ok)
	}
}
