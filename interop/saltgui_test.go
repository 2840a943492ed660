//go:build interop && saltgui

package interop

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

// TestSaltGUI uses the pages of SaltGUI in a headless Chromium, as a user would: it logs in, views minions and keys,
// accepts a key, runs test.ping and state.apply, and views the job. SALTGUI is a directory with a copy of SaltGUI's
// repository. No package index has it, so this test has a separate build tag.
func TestSaltGUI(t *testing.T) {
	dir, err := filepath.Abs(os.Getenv("SALTGUI"))
	if err != nil || os.Getenv("SALTGUI") == "" {
		t.Fatal("SALTGUI is not set: run this through make saltgui")
	}
	port := freeport.Port(t)
	s := newSite(t, "zeromq", fmt.Sprintf(`
rest_cherrypy: {port: %d, host: 127.0.0.1, disable_ssl: true, app: %s/saltgui/index.html, static: %s/saltgui/static}
netapi_enable_clients: [local, local_async, runner, wheel]
`, port, dir, dir))
	write(t, s.dir+"/users", "alice:secret\n")
	text, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), string(text)+fmt.Sprintf("external_auth: {file: {^filename: %s/users, alice: ['.*', '@runner', '@wheel']}}\n", s.dir))
	m := &ourMaster{site: s, t: t, root: t, line: "3007", id: "web1"}
	m.up()
	start(t, ours("salt-minion"), "-c", s.minion(t, "web1", ""))
	await(t, "a pending key", func() bool {
		_, err := os.Stat(s.dir + "/pki/minions_pre/web1")
		return err == nil
	})

	b := newBrowser(t)
	b.open(fmt.Sprintf("http://127.0.0.1:%d/", port))
	b.until("the form", `return document.querySelector("#login-button") !== null`)
	b.run(`document.querySelector("#username").value = "alice";
		document.querySelector("#password").value = "wrong";
		document.querySelector("#login-form select, form select").value = "file";
		document.querySelector("#login-button").click()`)
	b.shows("Authentication failed")
	b.run(`document.querySelector("#password").value = "secret"; document.querySelector("#login-button").click()`)
	b.until("the session", `return sessionStorage.getItem("token") !== null || Object.keys(sessionStorage).some((k) => k.includes("token"))`)
	b.until("the minions", `return location.hash === "#minions" && panel("minions") !== undefined`)

	b.run(`location.hash = "keys"`)
	b.until("the pending key", `const e = panel("keys")?.querySelector(".status.unaccepted"); return !!e && e.innerText === "unaccepted"`)
	b.until("its fingerprint", `const e = panel("keys")?.querySelector(".fingerprint"); return !!e && /^[0-9a-f:]{95}$/.test(e.innerText)`)
	mark := m.bus.mark()
	b.run(`[...panel("keys").querySelectorAll(".menu-dropdown-content .run-command-button")].
		find((e) => e.textContent.startsWith("Accept") && e.closest("tr")).click()`)
	b.until("the command", `return document.querySelector("#command").value.startsWith("wheel.key.accept")`)
	b.run(`document.querySelector("#run-command").click()`)
	m.bus.wait(mark, "salt/minion/web1/start")
	b.run(`document.querySelector("#cmd-close-button, .nearly-visible-button, #button-close-cmd")?.click()`)
	b.until("the accepted key", `const e = panel("keys")?.querySelector(".status.accepted"); return !!e && e.innerText === "accepted"`)

	b.run(`location.hash = "minions"`)
	b.until("the minion", `return panel("minions")?.innerText.includes("web1")`)
	ping := b.command("*", "test.ping")
	if !strings.Contains(ping, "web1") || !strings.Contains(ping, "true") {
		t.Errorf("test.ping shows %q", ping)
	}
	applied := b.command("web1", "state.apply plain")
	for _, want := range []string{"web1", "written", "says"} {
		if !strings.Contains(applied, want) {
			t.Errorf("state.apply does not show %q:\n%s", want, applied)
		}
	}
	if _, err := os.Stat(s.dir + "/managed.txt"); err != nil {
		t.Error(err)
	}

	b.run(`location.hash = "jobs"`)
	b.until("the jobs", `const e = panel("jobs"); return !!e && e.innerText.includes("state.apply") && e.innerText.includes("test.ping")`)
	b.run(`[...panel("jobs").querySelectorAll("tbody tr")].find((e) => e.innerText.includes("state.apply")).click()`)
	b.until("the job", `const e = panel("job"); return location.hash.startsWith("#job") && !!e && e.innerText.includes("web1") && e.innerText.includes("says")`)

	for _, page := range []string{"grains", "pillars", "schedules", "beacons", "mine", "nodegroups", "highstate", "events", "orchestrations", "options", "issues"} {
		b.run(`location.hash = arguments[0]`, page)
		b.until("page "+page, `return panel(arguments[0]) !== undefined`, page)
	}
	b.shot()
	for _, line := range b.complaints() {
		t.Errorf("the browser says: %s", line)
	}
}

// browser is a Chromium that is controlled through chromedriver (W3C WebDriver).
type browser struct {
	t       *testing.T
	session string // URL
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, driver, "--port=0")
	const ready = "started successfully on port "
	port := ""
	await(t, "the driver's port", func() bool {
		b, _ := os.ReadFile(p.log)
		_, after, _ := strings.Cut(string(b), ready)
		var ok bool
		port, _, ok = strings.Cut(after, ".")
		return ok
	})
	b := &browser{t: t, session: "http://127.0.0.1:" + port + "/session"}
	v := b.call("POST", "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:loggingPrefs": map[string]any{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"args": []string{"headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1400,1000",
			"disable-background-networking", "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "user-data-dir=" + tempDir(t)}},
	}}})
	b.session += "/" + v.(map[string]any)["sessionId"].(string)
	t.Cleanup(func() {
		if t.Failed() {
			b.shot()
		}
		b.call("DELETE", "", nil)
	})
	return b
}

// call sends one command of the driver's protocol.
func (b *browser) call(method, path string, body any) any {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequest(method, b.session+path, bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	if method != "POST" {
		r.Body = nil
		r.ContentLength = 0
	}
	resp, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	var v struct{ Value any }
	if err = errors.Join(err, json.Unmarshal(out, &v)); err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, out, err)
	}
	return v.Value
}

func (b *browser) open(url string) { b.call("POST", "/url", map[string]any{"url": url}) }

// panels defines a function that returns the visible panel with a name.
const panels = `const panel = (id) => [...document.querySelectorAll(".panel")].find((e) => e.id === id + "-panel" && e.closest(".route.current"));
`

// run runs JavaScript in the page.
func (b *browser) run(script string, args ...any) any {
	b.t.Helper()
	return b.call("POST", "/execute/sync", map[string]any{"script": panels + script, "args": append([]any{}, args...)})
}

// until waits until JavaScript returns true.
func (b *browser) until(what, script string, args ...any) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.run(script, args...) != true; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited %s in vain: %s; the page shows\n%s", patience, what, b.run(`return document.body.innerText`))
		}
	}
}

// shows waits for a text in the page.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.until(text, `return document.body.innerText.includes(arguments[0])`, text)
}

// command runs a command in SaltGUI's box and returns the output.
func (b *browser) command(target, command string) string {
	b.t.Helper()
	b.run(`document.querySelector("#button-manual-run").dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	b.until("the box", `return document.querySelector("#popup-run-command").offsetParent !== null || getComputedStyle(document.querySelector("#popup-run-command")).display !== "none"`)
	b.run(`for (const [id, text] of [["target", arguments[0]], ["command", arguments[1]]]) {
			const e = document.getElementById(id);
			e.value = text;
			for (const kind of ["input", "keyup", "change"]) e.dispatchEvent(new Event(kind, {bubbles: true}));
		}
		document.querySelector(".run-command pre").innerText = "";
		document.querySelector("#run-command").click()`, target, command)
	b.until("the output of "+command, `return document.querySelector("#run-command").disabled === false && document.querySelector(".run-command pre").innerText.includes("web1")`)
	out, _ := b.run(`return document.querySelector(".run-command pre").innerText`).(string)
	b.run(`document.body.dispatchEvent(new KeyboardEvent("keyup", {key: "Escape", bubbles: true}))`)
	return out
}

// shot writes a picture of the page to the file SALTGUI_SHOT.
func (b *browser) shot() {
	if file := os.Getenv("SALTGUI_SHOT"); file != "" {
		text, _ := b.call("GET", "/screenshot", nil).(string)
		picture, _ := base64.StdEncoding.DecodeString(text)
		if err := os.WriteFile(file, picture, 0o600); err != nil {
			b.t.Error(err)
		}
	}
}

// complaints returns the errors that the page's scripts logged, except for files that SaltGUI only looks for, and the
// wrong password.
func (b *browser) complaints() []string {
	var out []string
	list, _ := b.call("POST", "/se/log", map[string]any{"type": "browser"}).([]any)
	for _, v := range list {
		m := v.(map[string]any)
		text, _ := m["message"].(string)
		switch {
		case m["level"] != "SEVERE", strings.Contains(text, "/login "), strings.Contains(text, "404") && strings.Contains(text, "/static/"):
		// SaltGUI 1.35 sorts two orchestrations as if pairs were texts.
		case strings.Contains(text, "localeCompare is not a function"):
		default:
			out = append(out, text)
		}
	}
	return out
}
