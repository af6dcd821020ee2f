from sardonyx import *
