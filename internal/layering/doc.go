// Package layering holds the tests that keep the code base in its layers and its files readable.
//
// The file layers.txt lists the packages and what each may import; modules.txt lists the modules of others and who may import
// them. The tests read both files, so neither they nor the code can leave the other.
package layering
