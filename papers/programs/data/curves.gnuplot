# Curves, a surface and a rose.  gnuplot -e "points=400" curves.gnuplot
set terminal svg
set samples points
plot sin(x), cos(2*x), tan(x/3), sin(x)*exp(-x*x/20), log(abs(x)+1), x**0.3
set isosamples 30
splot sin(sqrt(x*x+y*y))/sqrt(x*x+y*y+1)
set polar
plot 3*sin(4*t), 1-sin(t)
