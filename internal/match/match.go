// Package match compares a minion with a target for execution modules, which may not import package protocol/target.
package match

import "github.com/brine-salt/brine/protocol/target"

// Subject is the minion that a target is compared with.
type Subject = target.Subject

// Delimiter separates the levels of grain and pillar expressions.
const Delimiter = target.DefaultDelimiter

// Target reports whether the minion matches a target of a type ("glob", "compound" and so on). Unlike for a published
// job, pillar_pcre uses the delimiter, too. The result is false if there is an error.
func Target(kind string, tgt any, delimiter string, s Subject) (bool, error) {
	expr, ok := tgt.(string)
	if kind != target.TypePillarPCRE || !ok || delimiter == Delimiter || delimiter == "" {
		return target.Match(kind, tgt, delimiter, s)
	}
	var pillar map[string]any
	if s.Pillar != nil {
		pillar = s.Pillar()
	}
	return target.SubdictMatch(pillar, expr, delimiter, target.SubdictRegex), nil
}
