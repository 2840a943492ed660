//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMasterOnThisHost calls saltutil.runner and saltutil.wheel on a minion on the host of a master, brine's or
// stock's. Stock's functions load the master's code and use its directories; brine's functions send a request to the
// master. Both must return the same.
func TestMasterOnThisHost(t *testing.T) {
	for _, which := range []string{"ours", "stock"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			var dir string
			var oracle *driver
			if which == "stock" {
				m := startStockMaster(t, "3007", "zeromq", "")
				dir, oracle = m.dir, m.driver
			} else {
				s := newSite(t, "tcp", "")
				start(t, ours("salt-master"), "-c", filepath.Dir(s.config()))
				await(t, "the master listens", func() bool { return listening(s.ret) && exists(s.dir+"/run/master_event_pub.ipc") })
				dir, oracle = s.dir, pythonDriver(t, "3007", "calls", s.config())
			}
			write(t, dir+"/etc/minion", "id: here\nroot_dir: "+dir+"\nfile_client: local\nenable_fqdns_grains: false\nlog_file: minion.log\nuser: root\n")
			for _, c := range []struct {
				fun  string
				arg  []any
				kw   map[string]any
				only string // the kind of master; "" for both
			}{
				{fun: "runner", arg: []any{"test.arg"}, kw: map[string]any{"arg": []any{"1", "x=2", "word"}, "kwarg": map[string]any{"foo": "bar"}, "more": "3"}},
				{fun: "runner", arg: []any{"test.metasyntactic"}, kw: map[string]any{"kwarg": map[string]any{"locality": "uk"}, "full_return": true}},
				{fun: "runner", arg: []any{"fileserver.file_list"}, kw: map[string]any{"saltenv": "base"}, only: "ours"},
				{fun: "runner", arg: []any{"fileserver.envs"}, kw: map[string]any{"arg": []any{1, 2, 3, 4, 5, 6}}, only: "ours"},
				{fun: "runner", arg: []any{"error.error"}, kw: map[string]any{"arg": []any{"ValueError", "broken"}, "full_return": true}},
				{fun: "runner", arg: []any{"no.such"}, only: "ours"},
				{fun: "runner", arg: []any{"test.arg", "text"}, only: "ours"},
				{fun: "runner", arg: []any{"test.arg"}, kw: map[string]any{"kwarg": "text"}, only: "ours"},
				{fun: "wheel", arg: []any{"key.list_all"}, only: "ours"},
				{fun: "wheel", arg: []any{"key.name_match", "x*"}},
				{fun: "wheel", arg: []any{"key.name_match"}, kw: map[string]any{"match": "x*"}, only: "ours"},
				{fun: "wheel", arg: []any{"key.name_match"}, only: "ours"},
				{fun: "wheel", arg: []any{"no.such"}, only: "ours"},
			} {
				if c.only != "" && c.only != which {
					continue
				}
				fun := "saltutil." + c.fun
				want, failed := oracle.call("caller", query{"fun": fun, "arg": c.arg, "kwarg": c.kw})
				got, failure := callHere(t, dir+"/etc", fun, c.arg, c.kw)
				if failed != "" || failure != "" {
					// Python's name of the exception is before the text, or is not shown.
					if _, text, _ := strings.Cut(failed, ": "); failed == "" || failure == "" || !strings.HasSuffix(failure, text) {
						t.Errorf("%s %v %v: stock fails with %q, ours with %q", fun, c.arg, c.kw, failed, failure)
					}
					continue
				}
				if diff := cmp.Diff(plainCall(want), plainCall(got)); diff != "" {
					t.Errorf("%s %v %v (-stock +ours):\n%s", fun, c.arg, c.kw, diff)
				}
			}
		})
	}
}

// TestJobsOfMasterOnThisHost runs jobs through saltutil.cmd and saltutil.cmd_iter on a minion on the host of a
// master, brine's or stock's. Stock's functions use the same master.
func TestJobsOfMasterOnThisHost(t *testing.T) {
	for _, which := range []string{"ours", "stock"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			var s *site
			var oracle *driver
			if which == "stock" {
				m := startStockMaster(t, "3007", "zeromq", "auto_accept: True\ntimeout: 20")
				s, oracle = m.site, m.driver
			} else {
				s = newSite(t, "zeromq", "auto_accept: True\ntimeout: 20")
				start(t, ours("salt-master"), "-c", filepath.Dir(s.config()))
				await(t, "the master listens", func() bool { return listening(s.ret) && exists(s.dir+"/run/master_event_pub.ipc") })
				oracle = pythonDriver(t, "3007", "calls", s.config())
			}
			start(t, ours("salt-minion"), "-c", s.minion(t, "there", ""))
			// Stock's client finds the master in the minion's configuration; brine's finds it in the master's
			// configuration next to it.
			write(t, s.dir+"/etc/minion", fmt.Sprintf("id: here\nroot_dir: %s\nfile_client: local\nenable_fqdns_grains: false\nlog_file: minion.log\nuser: root\n"+
				"pki_dir: pki\ncachedir: cache\nsock_dir: run\nret_port: %d\npublish_port: %d\ntimeout: 20\n", s.dir, s.ret, s.pub))
			await(t, "the minion answers", func() bool {
				v, _ := callHere(t, s.dir+"/etc", "saltutil.cmd", []any{"*", "test.ping"}, nil)
				m, _ := v.(map[string]any)
				return len(m) == 1
			})
			for _, c := range []struct {
				arg []any
				kw  map[string]any
				or  func(any) any // changes stock's answer into the expected one
			}{
				{arg: []any{"*", "test.ping"}},
				{arg: []any{"nobody*", "test.ping"}},
				{arg: []any{[]any{"there", "nobody"}, "test.echo"}, kw: map[string]any{"tgt_type": "list", "kwarg": map[string]any{"text": "x y"}, "timeout": 60}},
				{arg: []any{"*", "test.retcode", []any{3}}},
				{arg: []any{"*", "no.such"}},
				{arg: []any{"*", "test.ping"}, kw: map[string]any{"subset": 1, "timeout": 60}},
				{arg: []any{"*", "test.ping"}, kw: map[string]any{"batch": "50%"}, or: func(v any) any {
					if m, ok := v.(map[string]any)["there"].(map[string]any); ok {
						m["retcode"] = 0.0 // which stock does not return
					}
					return v
				}},
			} {
				want, failed := oracle.call("caller", query{"fun": "saltutil.cmd", "arg": c.arg, "kwarg": c.kw})
				if c.or != nil {
					want = c.or(want)
				}
				for _, fun := range []string{"saltutil.cmd", "saltutil.cmd_iter"} {
					if fun == "saltutil.cmd_iter" && (c.kw["batch"] != nil || c.kw["subset"] != nil) {
						continue
					}
					got, failure := callHere(t, s.dir+"/etc", fun, c.arg, c.kw)
					if diff := cmp.Diff(plainCall(want), plainCall(got)); diff != "" || failed != "" || failure != "" {
						t.Errorf("%s %v %v: stock %q, ours %q (-stock +ours):\n%s", fun, c.arg, c.kw, failed, failure, diff)
					}
				}
			}
		})
	}
}

// TestNoMasterOnThisHost checks the errors of the functions on a host without a master.
func TestNoMasterOnThisHost(t *testing.T) {
	t.Parallel()
	s := newSite(t, "zeromq", "")
	write(t, s.dir+"/etc/minion", "id: here\nroot_dir: "+s.dir+"\nfile_client: local\nlog_file: minion.log\nuser: root\n")
	for _, fun := range []string{"saltutil.runner", "saltutil.wheel"} {
		_, failure := callHere(t, s.dir+"/etc", fun, []any{"test.arg"}, nil)
		if want := "Error running '" + fun + "': This command can only be executed on a minion that is located on the master."; failure != want {
			t.Errorf("%s fails with %q", fun, failure)
		}
	}
	_, failure := callHere(t, s.dir+"/etc", "saltutil.cmd", []any{"*", "test.ping"}, nil)
	if !strings.Contains(failure, "The salt master could not be contacted. Is master running?") {
		t.Errorf("saltutil.cmd fails with %q", failure)
	}
}

// callHere calls brine's salt-call and returns the result, or the last line of the error.
func callHere(t *testing.T, conf, fun string, args []any, kwargs map[string]any) (value any, failure string) {
	t.Helper()
	words := []string{"--local", "-c", conf, "--out", "json", "-l", "quiet", fun}
	shown := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, a := range args {
		words = append(words, shown(a))
	}
	for k, v := range kwargs {
		words = append(words, k+"="+shown(v))
	}
	cmd := exec.CommandContext(t.Context(), ours("salt-call"), words...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var ret struct{ Local any }
	if json.Unmarshal(out, &ret) == nil { // with a return code of 1 if the run failed
		return ret.Local, ""
	}
	text := strings.TrimSpace(stderr.String())
	if text == "" {
		t.Fatalf("%q failed without a word: %v", words, err)
	}
	if at := regexp.MustCompile(`(?s)^Passed invalid arguments: (.*)\.\n\nUsage:$`).FindStringSubmatch(text); at != nil {
		return nil, at[1]
	}
	return nil, text[strings.LastIndex(text, "\n")+1:]
}

// plainCall removes the data that differs between runs: the job id, the time, the traceback and brine's own
// documentation. It also removes the caller, which stock does not know but a master does.
func plainCall(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, run := v["jid"]; run {
			delete(v, "jid")
			delete(v, "_stamp")
			delete(v, "user")
			// Stock includes the job's own fields in the arguments of a function that accepts any.
			delete(v, "fun_args")
		}
		for k, x := range v {
			v[k] = plainCall(x)
		}
	case string:
		if at := regexp.MustCompile(`(?s)^(\nPassed invalid arguments: [^\n]*\n).*`).FindStringSubmatch(v); at != nil {
			return at[1]
		}
		if at := regexp.MustCompile(`(?s)^(Exception occurred in [^:]*): .*?(\w+: [^\n]*)\n*$`).FindStringSubmatch(v); at != nil {
			return at[1] + ": " + at[2]
		}
	}
	return v
}
