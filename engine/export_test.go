package engine

var Words = allWords
