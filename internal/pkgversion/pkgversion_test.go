package pkgversion

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestDeb(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.0", "1.0", 0}, {"1.0", "1.00", 0}, {"1.0", "1.0-0", 0}, {"1.0~rc1", "1.0", -1}, {"1.0-1", "1.0-1~bpo1", 1},
		{"1:0", "9", 1}, {"1.2a", "1.2", 1}, {"1.2a", "1.2+", -1}, {"10", "9", 1}, {"1.0-1", "1.0-1.1", -1}, {"", "0", -1},
		{"99999999999999999999999", "99999999999999999999998", 1}, {"1-2-3", "1-2-4", -1}, {"0:1", "1", 0},
	} {
		got, ok := Deb(c.a, c.b)
		back, _ := Deb(c.b, c.a)
		if got != c.want || !ok || back != -c.want {
			t.Errorf("Deb(%q, %q) = %d, %v and %d, want %d", c.a, c.b, got, ok, back, c.want)
		}
	}
	for _, bad := range []string{"a:1", "1:", "1-", ":1", "1 2", "-1", "2147483648:1"} {
		if _, ok := Deb(bad, "1"); ok {
			t.Errorf("%q is a version", bad)
		}
	}
}

// TestDebAsDpkg compares the results for random versions with dpkg's.
func TestDebAsDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no dpkg")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := version(rnd), version(rnd)
		if rnd.IntN(3) == 0 {
			b = a + version(rnd)
		}
		want, wantOK := 0, false
		for _, op := range []struct {
			name  string
			order int
		}{{"lt", -1}, {"eq", 0}, {"gt", 1}} {
			if exec.CommandContext(t.Context(), dpkg, "--compare-versions", a, op.name, b).Run() == nil {
				want, wantOK = op.order, true
				break
			}
		}
		if got, ok := Deb(a, b); got != want || ok != wantOK {
			t.Errorf("Deb(%q, %q) = %d, %v; dpkg says %d, %v", a, b, got, ok, want, wantOK)
		}
	}
}

func version(rnd *rand.Rand) string {
	const alphabet = "0011299ab~+-.:AZ _"
	var b strings.Builder
	for range rnd.IntN(8) {
		b.WriteByte(alphabet[rnd.IntN(len(alphabet))])
	}
	return b.String()
}

func TestRPM(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.0", "1.0", 0}, {"1.0", "2.0", -1}, {"2.0.1", "2.0.1a", -1}, {"5.5p1", "5.5p2", -1}, {"5.5p10", "5.5p1", 1},
		{"10xyz", "10.1xyz", -1}, {"xyz10", "xyz10.1", -1}, {"xyz.4", "8", -1}, {"1b.fc17", "1.fc17", -1}, {"1g.fc17", "1.fc17", 1},
		{"20101121", "20101122", -1}, {"2_0", "2.0", 0}, {"a", "a+", 0}, {"+a", "_a", 0}, {"1.0~rc1", "1.0", -1},
		{"1.0~rc1~git123", "1.0~rc1", -1}, {"1.0^", "1.0", 1}, {"1.0^git1", "1.0^git2", -1}, {"1.0^git1", "1.01", -1},
		{"1.0^20160101", "1.0.1", -1}, {"1.0~rc1^git1", "1.0~rc1", 1}, {"0001", "1", 0}, {"", "1", -1},
	} {
		if got, back := RPM(c.a, c.b), RPM(c.b, c.a); got != c.want || back != -c.want {
			t.Errorf("RPM(%q, %q) = %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestLoose(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"1.10", "1.9", 1}, {"1.0", "1", 1}, {"2024.1rc1", "2024.1", 1}, {"1.a", "1.b", -1}, {"3", "3", 0}, {"09", "9", 0}} {
		if got, _ := Loose(c.a, c.b); got != c.want {
			t.Errorf("Loose(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	list := []string{"1.0-1", "1.5-2", "2.0-1"}
	for desired, want := range map[string]string{
		">=1.5": "1.5-2", "> 1.5-2": "2.0-1", "1.5-2": "1.5-2", "<1.0": "", "!=1.0-1": "1.5-2", "<>1.0": "", "=2.0-1": "",
	} {
		if got := Match(desired, list, Deb); got != want {
			t.Errorf("Match(%q) = %q, want %q", desired, got, want)
		}
	}
}

func FuzzVersionsAreOrdered(f *testing.F) {
	f.Add("1.0-1", "1:2~a", "3^b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for name, by := range map[string]Func{"deb": Deb, "rpm": func(a, b string) (int, bool) { return RPM(a, b), true }} {
			ab, ok1 := by(a, b)
			ba, _ := by(b, a)
			bc, ok2 := by(b, c)
			ac, _ := by(a, c)
			if ok1 && ab != -ba {
				t.Errorf("%s: %q and %q compare as %d and %d", name, a, b, ab, ba)
			}
			if ok1 && ok2 && name == "deb" && ab < 0 && bc < 0 && ac >= 0 {
				t.Errorf("%s: %q < %q < %q, but not the first and the last", name, a, b, c)
			}
		}
	})
}

func TestPython(t *testing.T) {
	list := []string{"nonsense", "1.0.dev1", "1.0a1.dev2", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.post1", "1.0-2", "1.1", "1.10", "1!0.1"}
	for i, a := range list {
		for j, b := range list {
			if got := Python(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("Python(%q, %q) = %d", a, b, got)
			}
		}
	}
	if Python("1.0", "1.0.0") != 0 || Python("V1.0", "1") != 0 {
		t.Error("zeros at the end count")
	}
}
