//go:build interop

package interop

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keyFolders are the directories of a master's keys.
var keyFolders = []string{"minions", "minions_pre", "minions_rejected", "minions_denied"}

// TestStatesOfKeys runs each action of salt-key on a key in each state, and on an id that has a denied key in
// addition to its own, with each flag that includes other states. The texts, the exit code and the resulting state of
// each key must be those of stock.
func TestStatesOfKeys(t *testing.T) {
	inTurn(t)
	t.Parallel()
	gen := tempDir(t)
	texts := map[string]string{} // one and two
	for _, name := range []string{"one", "two"} {
		if out, code := output(t, ours("salt-key"), "-c", gen, "--gen-keys="+name, "--gen-keys-dir="+gen); code != 0 {
			t.Fatal(out)
		}
		texts[name] = strings.TrimSpace(readAll(t, gen+"/"+name+".pub"))
	}
	had := map[string]string{ // folder/id: key
		"minions/acc": "one", "minions_pre/pre": "one", "minions_rejected/rej": "one", "minions_denied/den": "one",
		"minions/accden": "one", "minions_denied/accden": "two", "minions_pre/preden": "one", "minions_denied/preden": "two",
		"minions_rejected/rejden": "one", "minions_denied/rejden": "two",
	}
	commands := []string{"-L", "-l acc", "-l pre", "-l un", "-l den", "-l rej", "-l all", "-F", "-P", "-f *den", "-p *den", "-L --out=json"}
	flags := []string{"", " --include-accepted", " --include-rejected", " --include-denied", " --include-all"}
	for _, act := range []string{"-A", "-R", "-D", "-a none", "-r none", "-d none"} {
		for _, flag := range flags {
			commands = append(commands, act+flag+" -y")
		}
	}
	for _, act := range []string{"-a den", "-r den", "-a accden --include-denied", "-r accden --include-denied", "-d accden",
		"-a rejden --include-all", "-a preden --include-denied", "-r rejden --include-denied", "-r rej", "-a acc", "-d den,rej"} {
		commands = append(commands, act+" -y")
	}
	for _, line := range []string{"3006", "3007", "3008"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			for _, who := range []string{"stock", "ours"} {
				root := dir + "/" + who
				write(t, root+"/cache/minions/acc/data.p", "")
				write(t, root+"/etc/master", "root_dir: "+root+"\npki_dir: pki\ncachedir: cache\nsock_dir: run\nlog_file: log\nuser: root\n")
			}
			d := pythonDriver(t, line, "calls", dir+"/stock/etc/master")
			for _, c := range commands {
				for _, who := range []string{"stock", "ours"} {
					for _, folder := range keyFolders {
						if err := os.RemoveAll(filepath.Join(dir, who, "pki", folder)); err != nil {
							t.Fatal(err)
						}
					}
					for path, key := range had {
						write(t, dir+"/"+who+"/pki/"+path, texts[key])
					}
				}
				// 3008 computes other fingerprints for the same keys, and has another order in JSON.
				if line == "3008" && (c == "-F" || strings.HasPrefix(c, "-f") || strings.Contains(c, "json")) {
					continue
				}
				sameProgram(t, d, dir, "salt-key -c DIR/WHO/etc "+c)
				theirs, mine := keysIn(dir+"/stock/pki", texts), keysIn(dir+"/ours/pki", texts)
				switch {
				case strings.HasPrefix(c, "-A --include-denied") && line != "3008":
					// In stock before 3008, accepting a denied key leaves the old, rejected key of its id, which
					// keeps the minion out. In brine and 3008 it does not.
					if theirs["minions_rejected/rejden"] != "one" || mine["minions_rejected/rejden"] != "" {
						t.Errorf("%s: the rejected key is %q, ours %q", c, theirs["minions_rejected/rejden"], mine["minions_rejected/rejden"])
					}
					delete(theirs, "minions_rejected/rejden")
				case (strings.HasPrefix(c, "-R --include-denied") || strings.HasPrefix(c, "-r accden")) && line == "3008":
					// 3008 loses the accepted key if a denied one of the same id is rejected. In brine, as in 3007,
					// -d restores it.
					if theirs["minions/accden"] != "" || mine["minions/accden"] != "one" {
						t.Errorf("%s: the accepted key is %q, ours %q", c, theirs["minions/accden"], mine["minions/accden"])
					}
					delete(mine, "minions/accden")
				}
				if diff := cmp.Diff(theirs, mine); diff != "" {
					t.Errorf("the keys after %s (-stock +ours):\n%s", c, diff)
				}
			}
		})
	}
}

// withoutRepeats keeps each line about a changed key once. Stock repeats it for each state that an id has afterwards,
// in the order of its directories, which differs in 3008.
func withoutRepeats(s string) string {
	at := strings.Index(s, "Key for minion ")
	if at < 0 {
		return s
	}
	lines := strings.Split(strings.TrimSuffix(s[at:], "\n"), "\n")
	slices.Sort(lines)
	return s[:at] + strings.Join(slices.Compact(lines), "\n") + "\n"
}

// keysIn returns the keys of a master by directory and id. texts has the names of the keys.
func keysIn(pki string, texts map[string]string) map[string]string {
	out := map[string]string{}
	for _, folder := range keyFolders {
		list, _ := os.ReadDir(pki + "/" + folder)
		for _, e := range list {
			b, err := os.ReadFile(pki + "/" + folder + "/" + e.Name())
			what := fmt.Sprint(string(b), err)
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				if strings.TrimSpace(string(b)) == texts[name] {
					what = name
				}
			}
			out[folder+"/"+e.Name()] = what
		}
	}
	return out
}

// TestKeyOfAnother starts a minion for whose id the master has accepted another key: stock's and brine's, under stock
// masters and brine's. Its key must be denied, and it must report this and end with stock's exit code. After the
// accepted key is deleted, the minion must become pending.
func TestKeyOfAnother(t *testing.T) {
	inTurn(t)
	t.Parallel()
	gen := tempDir(t)
	if out, code := output(t, ours("salt-key"), "-c", gen, "--gen-keys=other", "--gen-keys-dir="+gen); code != 0 {
		t.Fatal(out)
	}
	other := strings.TrimSpace(readAll(t, gen+"/other.pub"))
	for _, pair := range []struct{ master, minion string }{
		{"3006", "ours"}, {"3007", "ours"}, {"3008", "ours"}, {"ours", "3006"}, {"ours", "3007"}, {"ours", "3008"}, {"ours", "ours"}, {"3007", "3007"},
	} {
		t.Run("master "+pair.master+", minion "+pair.minion, func(t *testing.T) {
			t.Parallel()
			program := func(line, name string) string {
				if line == "ours" {
					return ours(name)
				}
				return stock(t, line, name)
			}
			s := newSite(t, "tcp", "")
			conf := filepath.Dir(s.config())
			write(t, s.dir+"/pki/minions/web1", other)
			start(t, program(pair.master, "salt-master"), "-c", conf)
			await(t, "the master listens", func() bool { return listening(s.ret) && listening(s.pub) })
			minion := program(pair.minion, "salt-minion")
			at := s.minion(t, "web1", "rejected_retry: false\n")
			first := start(t, minion, "-c", at, "--disable-keepalive")
			code := first.wait()
			if code != 77 && pair.minion != "3008" { // reported as rejected
				t.Errorf("the minion ended with %d", code)
			}
			log := readAll(t, first.log)
			if !strings.Contains(log, "The Salt Master has rejected this minion's public key!") {
				t.Errorf("the minion does not say that its key was rejected:\n%s", log)
			}
			if cause := "another key is accepted for this id"; pair.minion == "ours" && !strings.Contains(log, cause) {
				t.Errorf("the minion does not say %q:\n%s", cause, log)
			}
			list, code := output(t, program(pair.master, "salt-key"), "-c", conf, "-L")
			want := "Accepted Keys:\nweb1\nDenied Keys:\nweb1\nUnaccepted Keys:\nRejected Keys:\n"
			if list != want || code != 0 {
				t.Errorf("salt-key -L ended with %d: %s", code, list)
			}
			if list, code = output(t, program(pair.master, "salt-key"), "-c", conf, "-y", "-d", "web1"); code != 0 {
				t.Errorf("salt-key -d ended with %d: %s", code, list)
			}
			_ = os.Remove(filepath.Dir(at) + "/process_responsibility_minion.pid")
			start(t, minion, "-c", at, "--disable-keepalive")
			await(t, "the key is pending", func() bool { return exists(s.dir + "/pki/minions_pre/web1") })
		})
	}
}
