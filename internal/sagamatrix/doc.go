// Package sagamatrix holds only tests: sagas of real destinations' fakes, killed
// at every point, with every vice, and counted at the destinations.
package sagamatrix
