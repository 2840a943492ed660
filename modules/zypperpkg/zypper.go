// Package zypperpkg is Salt's execution module "pkg" on SUSE's systems: packages, patterns, patches, products and locks through
// zypper and rpm. Salt's source: salt/modules/zypperpkg.py.
package zypperpkg

import (
	"context"
	"encoding/xml"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg.mod_repo differs: with root the address of a repository can be changed too; Salt fails with a TypeError.

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") != "Suse" {
		return false, "Module zypper: non SUSE OS not supported by zypper package manager"
	}
	if e.Which("zypper") == "" {
		return false, "Module zypper: zypper package manager not found"
	}
	return true, ""
}

// zypper is how the program is run.
type zypper struct {
	root string
	// xml makes it answer in XML.
	xml bool
	// nolock is for commands that only read; refresh lets such a command update the indexes.
	nolock, refresh bool
	// noraise leaves errors to the caller; missing takes "nothing found" for success.
	noraise, missing bool
	scope            bool
	success          []int
}

// answer is the output of zypper.
type answer struct {
	saltcmd.Result
	doc *node
	// failed is the text of the error, or "".
	failed string
}

// good reports whether an exit status says that everything worked.
func good(code int) bool { return slices.Contains([]int{0, 100, 101, 102, 103}, code) }

// locked is the exit status of a zypper that waits for another one.
const locked = 7

// patience is how long a locked zypper is waited for before it is tried again.
const patience = 5 * time.Second

func (z zypper) call(ctx context.Context, c *modules.Call, args ...string) (answer, error) {
	cmd := []string{"zypper", "--non-interactive"}
	if z.xml {
		cmd = append(cmd, "--xmlout")
	}
	if !z.refresh && !slices.Contains(args, "--no-refresh") {
		cmd = append(cmd, "--no-refresh")
	}
	if z.root != "" {
		cmd = append(cmd, "--root", z.root)
	}
	cmd = append(cmd, args...)
	if z.scope {
		cmd = append(systemd.Scope(ctx, c), cmd...)
	}
	env := saltcmd.Environment(c, "pkg", "zypperpkg")
	if z.nolock && !z.refresh {
		env = append(env, "ZYPP_READONLY_HACK=1")
	}
	success := z.success
	if z.missing {
		success = []int{104}
	}
	for blocked := false; ; blocked = true {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, Env: env, Success: success})
		if err != nil {
			return answer{}, err
		}
		info, wait := map[string]any(nil), out.Retcode == locked
		if wait {
			info = blocker(ctx, c)
		} else if out.Retcode > 0 && rpmLocked(c) {
			info, wait = map[string]any{"info": "RPM is temporarily locked.", "success": true}, true
		}
		if !wait {
			a := answer{Result: out, failed: z.failure(out)}
			if blocked {
				a.released(ctx, c)
			}
			return a, z.judge(&a)
		}
		tell(ctx, c, info, "zypper/blocked")
		timer := time.NewTimer(patience)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer{}, ctx.Err()
		}
	}
}

// tell sends an event to the master; it need not arrive.
func tell(ctx context.Context, c *modules.Call, info map[string]any, tag string) {
	if _, err := c.Exec(ctx, "event.fire_master", info, tag); err != nil {
		c.Logger().Debug("Cannot tell the master about a lock", "err", err)
	}
}

func (a answer) released(ctx context.Context, c *modules.Call) {
	text := a.failed
	if text == "" {
		text = "Zypper has been released"
	}
	tell(ctx, c, map[string]any{"success": a.failed == "", "info": text}, "zypper/released")
}

// blocker describes the process that holds zypper's lock.
func blocker(ctx context.Context, c *modules.Call) map[string]any {
	b, err := os.ReadFile(c.Path("/var/run/zypp.pid"))
	if err != nil {
		return map[string]any{"info": "Zypper is locked, but no Zypper lock has been found.", "success": false}
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	var v any
	if err == nil {
		v, err = c.ExecKw(ctx, "ps.proc_info", []any{int64(pid)}, map[string]any{"attrs": []any{"pid", "name", "cmdline", "create_time"}})
	}
	info, ok := v.(map[string]any)
	if err != nil || !ok {
		return map[string]any{"info": "Unable to retrieve information about blocking process: " + pytext.Str(err), "success": false}
	}
	if words, ok := info["cmdline"].([]any); ok {
		var list []string
		for _, w := range words {
			list = append(list, pytext.Str(w))
		}
		info["cmdline"] = strings.Join(list, " ")
	}
	if born, ok := info["create_time"].(float64); ok {
		info["info"] = "Blocking process created at " + time.UnixMicro(int64(born*1e6)).UTC().Format("2006-01-02T15:04:05.999999") + "."
	}
	info["success"] = true
	return info
}

// failure returns the text of an error, or "" if the command succeeded.
func (z zypper) failure(out saltcmd.Result) string {
	if good(out.Retcode) || slices.Contains([]int{6, locked, 106, 107}, out.Retcode) {
		return ""
	}
	var text []string
	if !z.xml {
		if msg := pytext.Strip(out.Stderr) + pytext.Strip(out.Stdout); msg != "" {
			text = append(text, msg)
		}
	} else if doc, err := parse(out.Stdout); err == nil {
		for _, m := range doc.all("message") {
			if m.attr("type") == "error" {
				text = append(text, m.Text)
			}
		}
	} else if msg := pytext.Strip(out.Stderr); msg != "" {
		text = append(text, msg)
	}
	if text == nil {
		return "Check Zypper's logs."
	}
	return strings.Join(text, "\n")
}

// judge makes an error of a failure, and reads the XML.
func (z zypper) judge(a *answer) error {
	if a.failed != "" && !z.noraise {
		return modules.Errorf("Zypper command failure: %s", a.failed)
	}
	if !z.xml {
		return nil
	}
	doc, err := parse(a.Stdout)
	a.doc = doc
	return err
}

// node is an element of XML.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Nodes   []*node    `xml:",any"`
	Text    string     `xml:",chardata"`
}

func parse(text string) (*node, error) {
	n := &node{}
	if strings.TrimSpace(text) == "" {
		return nil, &modules.PythonError{Type: "ExpatError", Msg: "no element found: line 1, column 0"}
	}
	if err := xml.Unmarshal([]byte(text), n); err != nil {
		return nil, &modules.PythonError{Type: "ExpatError", Msg: err.Error()}
	}
	return n, nil
}

// all returns the child elements with a name, in order.
func (n *node) all(name string) []*node {
	var out []*node
	for _, k := range n.Nodes {
		if k.XMLName.Local == name {
			out = append(out, k)
		}
		out = append(out, k.all(name)...)
	}
	return out
}

// attr returns the value of an attribute, or "" if it is missing.
func (n *node) attr(name string) string {
	v, _ := n.has(name)
	return v
}

func (n *node) has(name string) (string, bool) {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// attrs returns all attributes.
func (n *node) attrs() map[string]any {
	ret := map[string]any{}
	for _, a := range n.Attrs {
		ret[a.Name.Local] = a.Value
	}
	return ret
}

// rootOf returns the directory in an argument, or "" if it is not set.
func rootOf(v any) string {
	if !pytext.Truth(v) {
		return ""
	}
	return pytext.Str(v)
}
