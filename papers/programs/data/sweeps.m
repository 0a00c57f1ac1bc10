% Sweeps of a parameter over the same points and a matrix of sines, computed again and again, as for an animation.
% octave-cli --norc --no-history sweeps.m TIMES
times = str2double(argv(){1}); s = 0;
for t = 1:times
  x = linspace(0, 10, 100);
  for k = 1:10
    s = s + sum(sin(k * x)) + sum(cos(x * k)) + sum(exp(-x * k)) + sum(log(1 + x * k));
  end
  A = zeros(20);
  for i = 1:20, for j = 1:20, A(i, j) = sin(pi * i * j / 21) ^ 1.5; end, end
end
printf("%.17g %.17g\n", s, abs(sum(A(:))));
