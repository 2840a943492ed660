package main

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/cliargs"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/protocol"
)

// targetFlags returns the target options, which exclude each other: their names, flags and Salt's tgt_type.
func targetFlags() [][3]string {
	return [][3]string{{"list_hosts", "--hosts", "list_hosts"}, {"pcre", "--pcre", "pcre"},
		{"list", "--list", "list"},
		{"grain", "--grain", "grain"}, {"grain_pcre", "--grain-pcre", "grain_pcre"},
		{"nodegroup", "--nodegroup", "nodegroup"},
		{"range", "--range", "range"}, {"compound", "--compound", "compound"},
		{"pillar_target", "--pillar", "pillar"},
		{"pillar_pcre", "--pillar-pcre", "pillar_pcre"}, {"ipcidr", "--ipcidr", "ipcidr"}}
}

// targetType returns the tgt_type that the command line selects.
func targetType(p *saltcli.Program) (string, error) {
	tgtType := "glob"
	var given []string
	for _, f := range targetFlags() {
		if p.Values.Bool(f[0]) {
			given = append(given, f[1])
			tgtType = f[2]
		}
	}
	if len(given) > 1 {
		return "", p.Usage("The options " + strings.Join(given, "/") +
			" are mutually exclusive. Please only choose one of them")
	}
	return tgtType, nil
}

// commandWords returns the target, function and arguments: --doc and --preview-target replace the function.
func commandWords(p *saltcli.Program) ([]string, error) {
	v, args := p.Values, slices.Clone(p.Values.Args)
	if v.Bool("preview_target") {
		args = append(args, "not_a_valid_command")
	}
	if v.Bool("doc") {
		if len(args) == 0 {
			args = []string{"*"}
		}
		if len(args) < 2 || args[1] != "sys.doc" {
			args = slices.Insert(args, 1, "sys.doc")
		}
		if len(args) > 3 {
			return nil, p.Usage("You can only get documentation for one method at one time.")
		}
	}
	if len(args) == 0 {
		return nil, &saltcli.ExitError{Code: saltcli.ExitOptions,
			Text: "\nCannot execute command without defining a target.\n\n"}
	}
	if len(args) == 1 {
		return nil, &saltcli.ExitError{Code: saltcli.ExitOptions,
			Text: "\nIncomplete options passed.\n\n"}
	}
	return args, nil
}

// splitList splits the target of -L at commas, or at blanks if it contains no comma.
func splitList(tgt string) []string {
	if strings.Contains(tgt, ",") {
		return strings.Split(strings.ReplaceAll(tgt, " ", ""), ",")
	}
	return strings.Fields(tgt)
}

// parseCommand parses the function and its arguments. Several functions are separated by commas, and their arguments
// by separators (salt/utils/parsers.py: SaltCMDOptionParser).
func parseCommand(p *saltcli.Program, words []string) (fun any, arg []any, err error) {
	raw := cliargs.NoParse(p.Values.String("no_parse"))
	if !strings.Contains(words[0], ",") {
		return words[0], parseInput(words[1:], raw), nil
	}
	funs := strings.Split(words[0], ",")
	lists := splitCompound(words[1:], p.Values.String("args_separator"), len(funs))
	switch {
	case len(lists) < len(funs):
		return nil, nil, &saltcli.ExitError{Code: saltcli.ExitOptions,
			Text: "Cannot execute compound command without defining all arguments.\n"}
	case len(lists) > len(funs):
		return nil, nil, &saltcli.ExitError{Code: saltcli.ExitOptions,
			Text: "Cannot execute compound command with more arguments than commands.\n"}
	}
	for _, list := range lists {
		arg = append(arg, parseInput(list, raw))
	}
	return funs, arg, nil
}

// splitCompound splits arguments at those that equal the separator if their number fits the number of functions, and
// otherwise at every separator, also within arguments.
func splitCompound(args []string, sep string, funs int) [][]string {
	alone := 0
	for _, a := range args {
		if a == sep {
			alone++
		}
	}
	lists := [][]string{nil}
	last := func() *[]string { return &lists[len(lists)-1] }
	for _, a := range args {
		if alone == funs-1 {
			if a == sep {
				lists = append(lists, nil)
			} else {
				*last() = append(*last(), a)
			}
			continue
		}
		for i, part := range strings.Split(a, sep) {
			if i > 0 {
				lists = append(lists, nil)
			}
			if part != "" || !strings.Contains(a, sep) {
				*last() = append(*last(), part)
			}
		}
	}
	return lists
}

// parseInput converts arguments to typed values as Salt's command line does. Keyword arguments become one map at the
// end.
func parseInput(words, raw []string) []any {
	args, kwargs := cliargs.ParseOrdered(words, raw)
	if args == nil {
		args = []any{}
	}
	if len(kwargs) > 0 {
		args = append(args, protocol.Kwargs(kwargs))
	}
	return args
}
