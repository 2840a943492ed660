package cmdmod

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func shells(_ context.Context, c *modules.Call) (any, error) {
	list := []any{}
	text, err := os.ReadFile(c.Path("/etc/shells"))
	if err != nil {
		return list, nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list, nil
}

// known returns the command that prints a shell's version, and the pattern that finds the version in its output.
func known(shell string) (pattern string, cmd []string) {
	switch shell {
	case "bash":
		return `version (\d\S*)`, []string{"bash", "--version"}
	case "bash-test-error": // Salt has these two for tests of wrong answers
		return `versioZ ([-\w.]+)`, []string{"bash", "--version"}
	case "bash-test-env":
		return `(HOME=.*)`, []string{"bash", "-c", "declare"}
	case "zsh":
		return `^zsh (\d\S*)`, []string{"zsh", "--version"}
	case "tcsh":
		return `^tcsh (\d\S*)`, []string{"tcsh", "--version"}
	case "cmd":
		return `Version ([\d.]+)`, []string{"cmd.exe", "/C", "ver"}
	case "powershell":
		return `PSVersion\s+(\d\S*)`, []string{"powershell", "-NonInteractive", "$PSVersionTable"}
	case "perl":
		return `^(\d\S*)`, []string{"perl", "-e", `printf "%vd\n", $^V;`}
	case "python":
		return `^Python (\d\S*)`, []string{"python", "-V"}
	case "ruby":
		return `^ruby (\d\S*)`, []string{"ruby", "-v"}
	case "php":
		return `^PHP (\d\S*)`, []string{"php", "-v"}
	}
	return "", nil
}

func shellInfo(ctx context.Context, c *modules.Call) (any, error) {
	return askShell(ctx, c, c.Str("shell"), c.Bool("list_modules"))
}

func askShell(ctx context.Context, c *modules.Call, shell string, listModules bool) (map[string]any, error) {
	pattern, cmd := known(shell)
	if cmd == nil {
		return map[string]any{"error": "Salt does not know how to get the version number for " + shell, "installed": nil}, nil
	}
	command := modules.Command{Args: cmd, Merge: true, Timeout: 10 * time.Second}
	if _, ok := c.Context().Getenv("HOME"); !ok {
		command.Env = []string{"HOME=" + homeOf(c, "")}
	}
	got, err := c.Cmd(ctx, command)
	if err != nil {
		return shellFailed(ctx, cmd, err)
	}
	if got.TimedOut {
		return map[string]any{"error": "Unable to run command '" + strings.Join(cmd, " ") + "' Reason: Timed out.", "installed": false}, nil
	}
	ret := map[string]any{"installed": nil, "path": orNone(c.Which(cmd[0]))}
	text := string(got.Stdout)
	version := ""
	if m := regexp.MustCompile("(?i)" + pattern).FindStringSubmatch(text); m != nil {
		ret["version_raw"] = m[1]
		version = leading(m[1])
	}
	if version == "" {
		ret["error"] = "The version regex pattern for shell " + shell + ", could not find the version string"
		ret["stdout"] = text
		return ret, nil
	}
	parts := strings.Split(version, ".")
	if len(parts) == 1 {
		parts = append(parts, "0")
	}
	ret["installed"], ret["version"] = true, strings.Join(parts[:min(3, len(parts))], ".")
	if shell == "powershell" {
		ret["psversion"] = ret["version_raw"]
		if listModules {
			ret["modules"] = psModules(ctx, c)
		}
	}
	return ret, nil
}

func shellFailed(ctx context.Context, cmd []string, err error) (map[string]any, error) {
	if ctx.Err() != nil {
		return nil, err
	}
	reason, _ := modules.OSErrorText(err)
	var missing *modules.MissingCommandError
	if reason == "" && errors.As(err, &missing) {
		reason, _ = modules.OSErrorText(syscall.ENOENT)
	}
	if reason == "" {
		return nil, err
	}
	text := "Unable to run command '" + strings.Join(cmd, " ") + "' Reason: " + reason + ": " + pytext.Repr(cmd[0])
	return map[string]any{"error": text, "installed": false}, nil
}

// leading returns the digits and dots at the beginning of a version.
func leading(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(s)
	}
	if end == 0 || s[0] == '.' {
		return ""
	}
	return s[:end]
}

// tty writes to a terminal. Only names of terminals are taken: "tty" or "pts" and a word.
func tty(_ context.Context, c *modules.Call) (any, error) {
	name, ok := c.Value("device").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("device"), "startswith")
	}
	var path string
	switch {
	case strings.HasPrefix(name, "tty"):
		path = "/dev/" + name
	case strings.HasPrefix(name, "pts"):
		path = "/dev/" + strings.ReplaceAll(name, "pts", "pts/")
	default:
		return map[string]any{"Error": "The specified device is not a valid TTY"}, nil
	}
	failed := map[string]any{"Error": "Echoing to " + path + " returned error"}
	word := strings.TrimPrefix(name[3:], "/")
	if strings.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return failed, nil
	}
	f, err := os.OpenFile(c.Path(path), os.O_WRONLY|noTerminal, 0)
	if err != nil {
		return failed, nil
	}
	defer f.Close()
	if _, err := f.WriteString(c.Str("echo")); err != nil {
		return failed, nil
	}
	return map[string]any{"Success": "Message was successfully echoed to " + path}, nil
}
