// Package layout defines what a repository of updates and its hosts must agree on: names and limits that
// brine-release enforces when it signs, and brine-update when it verifies. A repository that violates one of them is
// refused completely.
package layout

import "regexp"

// Channels are the release channels of a repository.
var Channels = []string{"stable", "edge"}

// Program is the last part of each target's name: CHANNEL/PLATFORM/VERSION/brine-minion.
const Program = "brine-minion"

// MaxProgram is the maximum size of a program in bytes.
const MaxProgram = 64 << 20

var versions = regexp.MustCompile(
	`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,64})?$`)

// ValidVersion reports whether a text is a version like 1.2.3 or 1.2.3-rc.1.
func ValidVersion(text string) bool { return versions.MatchString(text) }
