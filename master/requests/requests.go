package requests

// Answers are all types of this package: the answers to what minions ask.
type Answers struct {
	Mine   Mine
	Files  Files
	Pushed Pushed
	Pillar Pillar
	Config Config
}
