package modules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Random files and random calls that edit them: each kind of file has pieces of which its lines are made, and calls.

// chance chooses.
type chance struct{ *rand.Rand }

func (r chance) of(list ...string) string { return list[r.IntN(len(list))] }

// lines are up to n lines.
func (r chance) lines(n int, line func() string) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString(line() + "\n")
	}
	return b.String()
}

// open has no end of line at its end now and then.
func (r chance) open(text string) string {
	if r.IntN(4) == 0 {
		return strings.TrimSuffix(text, "\n")
	}
	return text
}

// words are one to n words with gaps between them.
func (r chance) words(n int, gaps []string, words ...string) string {
	text := r.of(words...)
	for range r.IntN(n) {
		text += r.of(gaps...) + r.of(words...)
	}
	return text
}

func (r chance) call(fun string, args ...any) stockCase { return stockCase{fun: fun, args: args} }

func (c stockCase) with(kwargs map[string]any) stockCase {
	c.kwargs = kwargs
	return c
}

// randomFile is a kind of file: its text, and one call. path is where it lies.
type randomFile struct {
	name string
	text func(r chance) string
	call func(r chance, path string) stockCase
}

var (
	hostIPs   = []string{"127.0.0.1", "10.0.0.1", "10.0.0.2", "::1", "fe80::1", "300.1.1.1"}
	hostNames = []string{"localhost", "a", "b", "a.example", "B", "web01"}
	mountAt   = []string{"/a", "/b", "/a/b", "none", "/a b", "swap"}
	devices   = []string{"/dev/sda1", "/dev/sdb", "UUID=1-2", "LABEL=x", "tmpfs"}
	keys      = []string{"AAAAB3NzaC1yc2EAAAADAQABAAAAQQC1", "AAAAC3NzaC1lZDI1NTE5AAAAIA==", "AAAAB3NzaC1kc3MA"}
	someLines = []string{"one", "two", " two", "two two", "\tthree", "# one", "#two", "a = 1", "b: 2", "", "one.", "[x]", "END", "BEGIN"}
)

var randomFiles = []randomFile{
	{"hosts", func(r chance) string {
		return r.lines(6, func() string {
			switch r.IntN(8) {
			case 0:
				return r.of("# comment", "", "  ", "#10.0.0.1 a")
			case 1:
				return r.of(hostIPs...)
			case 2:
				return r.of(hostIPs...) + " " + r.words(2, []string{" "}, hostNames...) + r.of(" # why", "# why", " #")
			}
			return r.of("", "", " ") + r.of(hostIPs...) + r.of(" ", "\t", "   ") + r.words(3, []string{" ", "\t", "  "}, hostNames...) + r.of("", "", " ")
		})
	}, func(r chance, _ string) stockCase {
		ip, name := r.of(hostIPs...), r.of(hostNames...)
		switch r.IntN(8) {
		case 0:
			return r.call("hosts.list_hosts")
		case 1:
			return r.call("hosts.get_ip", name)
		case 2:
			return r.call("hosts.get_alias", ip)
		case 3:
			return r.call("hosts.has_pair", ip, name)
		case 4:
			return r.call("hosts.rm_host", ip, name)
		case 5:
			return r.call("hosts.set_host", ip, r.words(2, []string{" "}, hostNames...))
		case 6:
			return r.call("hosts.set_comment", ip, r.of("why", "two words"))
		}
		return r.call("hosts.add_host", ip, name)
	}},
	{"fstab", func(r chance) string {
		return r.lines(5, func() string {
			if r.IntN(6) == 0 {
				return r.of("# comment", "", "/dev/sdc /c", "a b c d e f g", "  ")
			}
			gap := r.of(" ", "\t", "  ")
			return r.of(devices...) + gap + strings.ReplaceAll(r.of(mountAt...), " ", `\040`) + gap + r.of("ext4", "xfs", "swap") + gap +
				r.of("defaults", "ro,noatime") + gap + r.of("0", "1") + gap + r.of("0", "2")
		})
	}, func(r chance, path string) stockCase {
		config := map[string]any{"config": path}
		switch r.IntN(4) {
		case 0:
			return r.call("mount.fstab").with(config)
		case 1:
			config["device"] = r.of(devices...)
			return r.call("mount.rm_fstab", r.of(mountAt...)).with(config)
		}
		if r.IntN(3) == 0 {
			config["opts"] = r.of("ro", "rw,noatime", "defaults")
		}
		if r.IntN(4) == 0 {
			config["match_on"] = r.of("name", "device", "auto", "opts")
		}
		if r.IntN(4) == 0 {
			config["not_change"] = true
		}
		if r.IntN(5) == 0 {
			config["test"] = true
		}
		config["device"] = r.of(devices...) // as an argument without name, LABEL=x would be one with a name
		config["fstype"] = r.of("ext4", "xfs")
		return r.call("mount.set_fstab", r.of(mountAt...)).with(config)
	}},
	{"authorized_keys", func(r chance) string {
		return r.lines(4, func() string {
			if r.IntN(5) == 0 {
				return r.of("# comment", "", "nonsense", "ssh-rsa", `from="a b",no-pty`)
			}
			return r.of("", "", `no-pty `, `command="echo a, b" `, `from="10.0.0.0/8",no-pty `) + r.of("ssh-rsa", "ssh-ed25519", "ssh-dss", "ecdsa-sha2-nistp256") + r.of(" ", "  ") +
				r.of(keys...) + r.of("", " ", " me@here", " two words")
		})
	}, func(r chance, path string) stockCase {
		config := map[string]any{"config": path}
		switch r.IntN(5) {
		case 0:
			return r.call("ssh.auth_keys", "root").with(config)
		case 1:
			return r.call("ssh.rm_auth_key", "root", r.of(keys...)).with(config)
		case 2:
			return r.call("ssh.check_key", "root", r.of(keys...), r.of("ssh-rsa", "ssh-dss"), r.of("", "me@here"), []any{}).with(config)
		}
		if r.IntN(2) == 0 {
			config["enc"] = r.of("ssh-rsa", "rsa", "ed25519", "ssh-dss", "dsa", "none")
		}
		if r.IntN(2) == 0 {
			config["comment"] = r.of("me@here", "two words")
		}
		if r.IntN(2) == 0 {
			config["options"] = []any{r.of("no-pty", "no-agent-forwarding")}
		}
		return r.call("ssh.set_auth_key", "root", r.of(keys...)).with(config)
	}},
	{"ini", func(r chance) string {
		return r.lines(8, func() string {
			return r.of("[x]", "[y]", "[ z ]", "a = 1", "a=2", "b = two words", "b:3", "c", "# a = 4", ";x", "", " d = 5", "a =")
		})
	}, func(r chance, path string) stockCase {
		section, option := r.of("x", "y", "z", "DEFAULT_IMPLICIT", "new"), r.of("a", "b", "c", "d")
		switch r.IntN(6) {
		case 0:
			return r.call("ini.get_ini", path)
		case 1:
			return r.call("ini.get_option", path, section, option)
		case 2:
			return r.call("ini.remove_option", path, section, option)
		case 3:
			return r.call("ini.get_section", path, section)
		case 4:
			return r.call("ini.remove_section", path, section)
		}
		return r.call("ini.set_option", path, map[string]any{section: map[string]any{option: r.of("1", "new", "two words", "")}})
	}},
	{"aliases", func(r chance) string {
		return r.lines(5, func() string {
			return r.of("a: b", "a:c, d", "root:\tme@there", "# x: y", "", "c : |/bin/x", "nothing", `"q": /dev/null`)
		})
	}, func(r chance, _ string) stockCase {
		alias := r.of("a", "c", "root", "new")
		switch r.IntN(5) {
		case 0:
			return r.call("aliases.list_aliases")
		case 1:
			return r.call("aliases.get_target", alias)
		case 2:
			return r.call("aliases.has_target", alias, r.of("b", "me@there"))
		case 3:
			return r.call("aliases.rm_alias", alias)
		}
		return r.call("aliases.set_target", alias, r.of("b", "c, d", "new@there"))
	}},
	{"lines", func(r chance) string { return r.open(r.lines(7, func() string { return r.of(someLines...) })) }, func(r chance, path string) stockCase {
		pattern := r.of("one", "^two", `t\w+`, "a.*", "#.*$", "^$", "(o)ne")
		switch r.IntN(8) {
		case 0:
			return r.call("file.replace", path, pattern, r.of("new", `<\g<0>>`, "")).with(map[string]any{"count": int64(r.IntN(3)), "backup": false,
				"append_if_not_found": r.IntN(2) == 0, "prepend_if_not_found": r.IntN(3) == 0, "bufsize": r.of("file", "1"), "flags": []any{r.of("MULTILINE", "IGNORECASE")}})
		case 1:
			return r.call("file.blockreplace", path).with(map[string]any{"marker_start": r.of("BEGIN", "one", "#two"), "marker_end": r.of("END", "two"), "content": r.of("x", "x\ny\n", ""),
				"append_if_not_found": r.IntN(2) == 0, "prepend_if_not_found": r.IntN(3) == 0, "backup": false, "append_newline": []any{true, false, nil}[r.IntN(3)]})
		case 2:
			return r.call("file.append", path, r.of(someLines...))
		case 3:
			return r.call("file.prepend", path, r.of(someLines...))
		case 4:
			return r.call("file.comment_line", path, pattern).with(map[string]any{"cmnt": []any{true, false}[r.IntN(2)], "backup": false})
		case 5:
			return r.call("file.contains_regex", path, pattern)
		case 6:
			return r.call("file.search", path, pattern).with(map[string]any{"multiline": r.IntN(2) == 0})
		}
		kw := map[string]any{"mode": r.of("ensure", "replace", "delete", "insert"), "content": r.of(someLines...), "indent": r.IntN(2) == 0}
		for _, k := range []string{"match", "before", "after"} {
			if r.IntN(2) == 0 {
				kw[k] = r.of("one", "two", "^# ", "a =", "END", "nowhere")
			}
		}
		if r.IntN(3) == 0 {
			kw["location"] = r.of("start", "end")
		}
		return r.call("file.line", path).with(kw)
	}},
}

// randomCases are the calls of each kind of file, with the same random numbers each time.
func randomCases(dir string) (cases []stockCase) {
	const each, further = 40, 4
	path := dir + "/file"
	for _, f := range randomFiles {
		for seed := range uint64(each) {
			r := chance{rand.New(rand.NewPCG(seed, 11))}
			text := f.text(r)
			c := f.call(r, path)
			for range r.IntN(further) {
				c.then = append(c.then, f.call(r, path))
			}
			c.name = fmt.Sprintf("random/%s.%d/%s", f.name, seed, c.fun)
			c.setup = fmt.Sprintf("printf '%%s' '%s' > file", text)
			c.check = "cat file"
			c.grains = map[string]any{"hosts.file": path, "aliases.file": path}
			cases = append(cases, c)
		}
	}
	return cases
}
