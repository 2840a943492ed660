package main

import (
	"fmt"
	"slices"
	"strings"
)

// functionsOf returns the command that prints the possible first words after the options, or "".
func functionsOf(program string) string {
	if program == "salt-call" {
		return "salt-call --local --out=newline_values_only sys.list_functions"
	}
	return ""
}

// shellName returns a program's name in the form for names of shell functions.
func shellName(program string) string { return "_brine_" + strings.ReplaceAll(program, "-", "_") }

// bash returns the completion for bash.
func (h *help) bash(program string) string {
	var all, any, dirs, files []string
	var b strings.Builder
	var chosen strings.Builder
	h.eachOption(func(o option) {
		all = append(all, o.names...)
		switch {
		case o.metavar == "":
		case o.choiceList() != nil:
			fmt.Fprintf(&chosen,
				"\t%s)\n\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n\t\treturn\n\t\t;;\n",
				strings.Join(o.names, "|"), strings.Join(o.choiceList(), " "))
		case o.kind() == "dir":
			dirs = append(dirs, o.names...)
		case o.kind() == "file":
			files = append(files, o.names...)
		default:
			any = append(any, o.names...)
		}
	})
	fmt.Fprintf(&b, "# bash completion for %s\n\n%s() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} "+
		"prev=${COMP_WORDS[COMP_CWORD-1]}\n", program, shellName(program))
	b.WriteString("\t# \"=\" is a word of its own in bash's list\n\t[ \"$cur\" = \"=\" ] && cur=\n")
	b.WriteString("\t[ \"$prev\" = \"=\" ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n\tcase $prev in\n")
	b.WriteString(chosen.String())
	for _, c := range []struct {
		names []string
		then  string
	}{{dirs, "\t\tCOMPREPLY=($(compgen -d -- \"$cur\"))\n"},
		{files, "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"}, {any, ""}} {
		if len(c.names) > 0 {
			fmt.Fprintf(&b, "\t%s)\n%s\t\treturn\n\t\t;;\n", strings.Join(c.names, "|"), c.then)
		}
	}
	b.WriteString("\tesac\n\tcase $cur in\n")
	fmt.Fprintf(&b, "\t-*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", strings.Join(all, " "))
	if list := functionsOf(program); list != "" {
		fmt.Fprintf(&b, "\t*) COMPREPLY=($(compgen -W \"$(%s 2>/dev/null)\" -- \"$cur\")) ;;\n",
			list)
	}
	fmt.Fprintf(&b, "\tesac\n}\ncomplete -o default -F %s %s\n", shellName(program), program)
	return b.String()
}

// zsh returns the completion for zsh.
func (h *help) zsh(program string) string {
	quote := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`, `'`, `'\''`)
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n\n", program)
	if list := functionsOf(program); list != "" {
		fmt.Fprintf(&b, "%s_functions() {\n\tcompadd -- ${(f)\"$(%s 2>/dev/null)\"}\n}\n\n",
			shellName(program), list)
	}
	b.WriteString("_arguments -s -S \\\n")
	h.eachOption(func(o option) {
		value := ""
		if o.metavar != "" {
			value = ":" + quote.Replace(strings.ToLower(o.metavar)) + ":"
			switch {
			case o.choiceList() != nil:
				value += "(" + strings.Join(o.choiceList(), " ") + ")"
			case o.kind() == "dir":
				value += "_files -/"
			case o.kind() == "file":
				value += "_files"
			}
		}
		for _, n := range o.names {
			equals := ""
			if o.metavar != "" && strings.HasPrefix(n, "--") {
				equals = "="
			}
			fmt.Fprintf(&b, "\t'(%s)%s%s[%s]%s' \\\n", strings.Join(o.names, " "), n, equals,
				quote.Replace(o.help), value)
		}
	})
	if functionsOf(program) != "" {
		fmt.Fprintf(&b, "\t'1:function:%s_functions' \\\n", shellName(program))
	}
	b.WriteString("\t'*:argument:_default'\n")
	return b.String()
}

// fish returns the completion for fish.
func (h *help) fish(program string) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var b strings.Builder
	fmt.Fprintf(&b, "# fish completion for %s\n", program)
	h.eachOption(func(o option) {
		fmt.Fprintf(&b, "complete -c %s", program)
		for _, n := range o.names {
			if long, ok := strings.CutPrefix(n, "--"); ok {
				fmt.Fprintf(&b, " -l %s", long)
			} else {
				fmt.Fprintf(&b, " -s %s", n[1:])
			}
		}
		if o.metavar != "" {
			switch list := o.choiceList(); {
			case list != nil:
				fmt.Fprintf(&b, " -x -a '%s'", strings.Join(slices.Compact(list), " "))
			case o.kind() == "dir":
				b.WriteString(" -x -a '(__fish_complete_directories)'")
			case o.kind() == "file":
				b.WriteString(" -r -F")
			default:
				b.WriteString(" -x")
			}
		}
		fmt.Fprintf(&b, " -d '%s'\n", quote.Replace(o.help))
	})
	if list := functionsOf(program); list != "" {
		fmt.Fprintf(&b, "complete -c %s -n '__fish_is_nth_token 1' -x -a '(%s 2>/dev/null)'\n",
			program, list)
	}
	return b.String()
}
