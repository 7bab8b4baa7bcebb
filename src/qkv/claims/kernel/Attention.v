(* Attention.v: the notions in which qkv states claims for Coq 8.16 with Coquelicot.

   Vectors live in an arbitrary real inner product space; R^d is one (euclidean, at the end). Items are the numbers below
   n. The theorems that qkv exports unfold these definitions, so a reader needs only the definitions of this file to
   know what a theorem says. Nothing here is an axiom. *)

From Coq Require Import Reals Lra Lia List Psatz.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(* ---- Sums over the items 0, ..., n - 1 ---- *)

Fixpoint total (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => total m f + f m end.

Definition total_but (n : nat) (l : list nat) (f : nat -> R) : R :=
  total n (fun i => if existsb (Nat.eqb i) l then 0 else f i).

Definition over (l : list nat) (f : nat -> R) : R := fold_right (fun i s => f i + s) 0 l.

(* ---- Inner product spaces ---- *)

Record InnerSpace := {
  vector :> Type;
  vzero : vector;
  vplus : vector -> vector -> vector;
  vscal : R -> vector -> vector;
  inner : vector -> vector -> R;
  inner_sym : forall x y, inner x y = inner y x;
  inner_zero_l : forall y, inner vzero y = 0;
  inner_plus_l : forall x y z, inner (vplus x y) z = inner x z + inner y z;
  inner_scal_l : forall r x z, inner (vscal r x) z = r * inner x z;
  inner_pos : forall x, 0 <= inner x x;
  (* Vectors with equal inner products with every vector are equal. *)
  vector_ext : forall x y, (forall w, inner x w = inner y w) -> x = y
}.
Arguments vzero {_}.
Arguments vplus {_} _ _.
Arguments vscal {_} _ _.
Arguments inner {_} _ _.

Definition vminus {E : InnerSpace} (x y : E) : E := vplus x (vscal (-1) y).
Definition norm2 {E : InnerSpace} (x : E) : R := sqrt (inner x x).

Notation "x +v y" := (vplus x y) (at level 50, left associativity).
Notation "x -v y" := (vminus x y) (at level 50, left associativity).
Notation "r *v x" := (vscal r x) (at level 40, left associativity).
Notation "x 'dot' y" := (inner x y) (at level 38, left associativity).

Fixpoint vtotal {E : InnerSpace} (n : nat) (f : nat -> E) : E :=
  match n with O => vzero | S m => vtotal m f +v f m end.

Definition vtotal_but {E : InnerSpace} (n : nat) (l : list nat) (f : nat -> E) : E :=
  vtotal n (fun i => if existsb (Nat.eqb i) l then vzero else f i).

(* ---- Families, bases, matrices ---- *)

Definition orthonormal {E : InnerSpace} (n : nat) (k : nat -> E) : Prop :=
  forall i j, (i < n)%nat -> (j < n)%nat -> k i dot k j = if Nat.eqb i j then 1 else 0.

Definition orthogonal_of_norm {E : InnerSpace} (n : nat) (b : R) (k : nat -> E) : Prop :=
  forall i j, (i < n)%nat -> (j < n)%nat -> k i dot k j = if Nat.eqb i j then b ^ 2 else 0.

(* A basis with columns a 0, ..., a (m - 1), applied to coordinates, and its transpose. *)
Definition combine {E : InnerSpace} (m : nat) (a : nat -> E) (x : nat -> R) : E := vtotal m (fun i => x i *v a i).
Definition coordinates {E : InnerSpace} (a : nat -> E) (y : E) : nat -> R := fun i => a i dot y.
Definition right_angles {E : InnerSpace} (m p : nat) (a b : nat -> E) : Prop :=
  forall i j, (i < m)%nat -> (j < p)%nat -> a i dot b j = 0.

(* The matrix u w' applied to x. *)
Definition outer {E : InnerSpace} (u w x : E) : E := (w dot x) *v u.

(* One member of a family replaced. *)
Definition update {A : Type} (f : nat -> A) (a : nat) (x : A) : nat -> A := fun i => if Nat.eqb i a then x else f i.

(* ---- Attention ---- *)

Definition softmax (n : nat) (s : nat -> R) (i : nat) : R := exp (s i) / total n (fun j => exp (s j)).
Definition alpha {E : InnerSpace} (n : nat) (k : nat -> E) (q : E) (i : nat) : R := softmax n (fun j => k j dot q) i.
Definition attend {E V : InnerSpace} (n : nat) (k : nat -> E) (v : nat -> V) (q : E) : V :=
  vtotal n (fun i => alpha n k q i *v v i).

(* ---- Limits: f tends to g along a filter (t -> oo, eps -> 0+, ...) if their difference tends to 0. ---- *)

Definition tends {T : Type} (F : (T -> Prop) -> Prop) (f g : T -> R) : Prop :=
  forall eps, 0 < eps -> F (fun t => Rabs (f t - g t) < eps).
Definition vtends {T : Type} {E : InnerSpace} (F : (T -> Prop) -> Prop) (f g : T -> E) : Prop :=
  forall eps, 0 < eps -> F (fun t => norm2 (f t -v g t) < eps).
(* Two limits, one after the other: first F, then G. *)
Definition tends_then {T U : Type} (F : (T -> Prop) -> Prop) (G : (U -> Prop) -> Prop) (f g : T -> U -> R) : Prop :=
  exists h : U -> R, G (fun u => tends F (fun t => f t u - g t u) (fun _ => h u)) /\ tends G h (fun _ => 0).
Definition vtends_then {T U : Type} {E : InnerSpace} (F : (T -> Prop) -> Prop) (G : (U -> Prop) -> Prop)
  (f g : T -> U -> E) : Prop :=
  exists h : U -> E, G (fun u => vtends F (fun t => f t u -v g t u) (fun _ => h u)) /\ vtends G h (fun _ => vzero).
(* Three limits, one after the other. *)
Definition vtends_then_then {T U W : Type} {E : InnerSpace} (F : (T -> Prop) -> Prop) (G : (U -> Prop) -> Prop)
  (H : (W -> Prop) -> Prop) (f g : T -> U -> W -> E) : Prop :=
  exists h : U -> W -> E,
    H (fun w => G (fun u => vtends F (fun t => f t u w -v g t u w) (fun _ => h u w)))
    /\ vtends_then G H h (fun _ _ => vzero).
Definition tends_then_then {T U W : Type} (F : (T -> Prop) -> Prop) (G : (U -> Prop) -> Prop)
  (H : (W -> Prop) -> Prop) (f g : T -> U -> W -> R) : Prop :=
  exists h : U -> W -> R,
    H (fun w => G (fun u => tends F (fun t => f t u w - g t u w) (fun _ => h u w)))
    /\ tends_then G H h (fun _ _ => 0).
Definition at_infinity : (R -> Prop) -> Prop := Rbar_locally p_infty.
Definition at_minus_infinity : (R -> Prop) -> Prop := Rbar_locally m_infty.
Definition above_zero : (R -> Prop) -> Prop := at_right 0.

(* ---- Expectations: a linear functional on random numbers. Every expectation on integrable random numbers extends to
   one; a theorem for all of them holds for the normal distribution. ---- *)

Record Expectation (O : Type) := {
  mean :> (O -> R) -> R;
  mean_ext : forall X Y, (forall o, X o = Y o) -> mean X = mean Y;
  mean_plus : forall X Y, mean (fun o => X o + Y o) = mean X + mean Y;
  mean_scal : forall r X, mean (fun o => r * X o) = r * mean X;
  mean_one : mean (fun _ => 1) = 1
}.
Definition covariance {O : Type} (M : Expectation O) (X Y : O -> R) : R :=
  M (fun o => (X o - M X) * (Y o - M Y)).
Definition variance {O : Type} (M : Expectation O) (X : O -> R) : R := covariance M X X.
(* The first two moments of a random vector with mean m and covariance u, w |-> u' S w. *)
Definition moments {O : Type} {E : InnerSpace} (M : Expectation O) (K : O -> E) (m : E) (S : E -> E) : Prop :=
  (forall u, M (fun o => u dot K o) = u dot m)
  /\ (forall u w, M (fun o => (u dot K o - u dot m) * (w dot K o - w dot m)) = u dot S w).

(* ======== Lemmas ======== *)

Section Sums.
Lemma total_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> total n f = total n g.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, (H n); auto. Qed.
Lemma total_plus n f g : total n (fun i => f i + g i) = total n f + total n g.
Proof. induction n; simpl; [ring|]. rewrite IHn; ring. Qed.
Lemma total_scal n r f : total n (fun i => r * f i) = r * total n f.
Proof. induction n; simpl; [ring|]. rewrite IHn; ring. Qed.
Lemma total_const n r : total n (fun _ => r) = INR n * r.
Proof. induction n; [simpl; ring|]. rewrite S_INR; simpl total; rewrite IHn; ring. Qed.
Lemma total_zero n f : (forall i, (i < n)%nat -> f i = 0) -> total n f = 0.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, (H n); auto; ring. Qed.
Lemma total_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> total n f <= total n g.
Proof. induction n; simpl; intros H; [lra|]. apply Rplus_le_compat; auto. Qed.
Lemma total_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= total n f.
Proof. induction n; simpl; intros H; [lra|]. apply Rplus_le_le_0_compat; auto. Qed.
Lemma total_pos n f : (1 <= n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < total n f.
Proof.
  intros Hn H. destruct n; [lia|]. simpl. apply Rplus_le_lt_0_compat; [|auto].
  apply total_nonneg. intros. left; auto.
Qed.
Lemma over_ext l f g : (forall i, In i l -> f i = g i) -> over l f = over l g.
Proof. induction l; simpl; intros H; [reflexivity|]. rewrite IHl, H; auto. Qed.
Lemma over_plus l f g : over l (fun i => f i + g i) = over l f + over l g.
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.
Lemma over_scal l r f : over l (fun i => r * f i) = r * over l f.
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.
Lemma over_const l r : over l (fun _ => r) = INR (length l) * r.
Proof. induction l; [simpl; ring|]. simpl length; rewrite S_INR; simpl over; rewrite IHl; ring. Qed.

Lemma over_remove l f m : NoDup l -> In m l -> over l f = f m + over (remove Nat.eq_dec m l) f.
Proof.
  induction l as [|x l IH]; intros D Hm; [destruct Hm|].
  inversion D as [|? ? Hx Dl]; subst. simpl.
  destruct (Nat.eq_dec m x) as [->|N].
  - rewrite notin_remove; [reflexivity|assumption].
  - destruct Hm as [->|Hm]; [congruence|]. simpl. rewrite IH; auto; ring.
Qed.

Lemma NoDup_without l m : NoDup l -> NoDup (remove Nat.eq_dec m l).
Proof.
  induction l as [|x l IH]; intros D; [constructor|]. inversion D as [|? ? Hx Dl]; subst. simpl.
  destruct (Nat.eq_dec m x); [auto|]. constructor; [|auto].
  intros H. apply in_remove in H. tauto.
Qed.

Lemma total_support n l f : NoDup l -> (forall i, In i l -> (i < n)%nat) ->
  (forall i, (i < n)%nat -> ~ In i l -> f i = 0) -> total n f = over l f.
Proof.
  revert l. induction n as [|n IH]; intros l D R Z.
  - destruct l as [|x l]; [reflexivity|]. exfalso. specialize (R x (or_introl eq_refl)). lia.
  - simpl. destruct (in_dec Nat.eq_dec n l) as [Hn|Hn].
    + rewrite (over_remove l f n D Hn), (IH (remove Nat.eq_dec n l)); [ring|now apply NoDup_without| |].
      * intros i Hi. apply in_remove in Hi. specialize (R i (proj1 Hi)). lia.
      * intros i Hi N. apply Z; [lia|]. intros Hl. apply N. apply in_in_remove; [lia|assumption].
    + rewrite (Z n) by (auto; lia). rewrite (IH l); [ring|assumption| |].
      * intros i Hi. specialize (R i Hi). assert (i <> n) by congruence. lia.
      * intros i Hi N. apply Z; [lia|assumption].
Qed.

Lemma total_named n l f r : NoDup l -> (forall i, In i l -> (i < n)%nat) ->
  (forall i, (i < n)%nat -> ~ In i l -> f i = r) ->
  total n f = over l f + (INR n - INR (length l)) * r.
Proof.
  intros D R Z.
  assert (A : total n f = total n (fun i => f i - r) + INR n * r).
  { rewrite <- (total_const n r), <- total_plus. apply total_ext. intros; ring. }
  assert (B : over l f = over l (fun i => f i - r) + INR (length l) * r).
  { rewrite <- over_const, <- over_plus. apply over_ext. intros; ring. }
  rewrite A, B, (total_support n l (fun i => f i - r)); [ring|assumption|assumption|].
  intros i Hi N. rewrite Z by assumption. ring.
Qed.

Lemma existsb_in i l : existsb (Nat.eqb i) l = true <-> In i l.
Proof.
  rewrite existsb_exists. split.
  - intros (x & Hx & E). apply Nat.eqb_eq in E. congruence.
  - intros H. exists i. split; [assumption|apply Nat.eqb_refl].
Qed.
Lemma existsb_out i l : ~ In i l -> existsb (Nat.eqb i) l = false.
Proof. intros H. destruct (existsb (Nat.eqb i) l) eqn:E; [|reflexivity]. apply existsb_in in E. tauto. Qed.

Lemma total_split n l f : NoDup l -> (forall i, In i l -> (i < n)%nat) -> total n f = over l f + total_but n l f.
Proof.
  intros D R. unfold total_but.
  assert (A : total n f = total n (fun i => if existsb (Nat.eqb i) l then f i else 0)
                          + total n (fun i => if existsb (Nat.eqb i) l then 0 else f i)).
  { rewrite <- total_plus. apply total_ext. intros i _. destruct (existsb _ l); ring. }
  rewrite A, (total_support n l (fun i => if existsb (Nat.eqb i) l then f i else 0)); [|assumption|assumption|].
  - f_equal. apply over_ext. intros i Hi. apply existsb_in in Hi. now rewrite Hi.
  - intros i _ N. now rewrite existsb_out.
Qed.

Lemma all_named n l : NoDup l -> (forall i, In i l -> (i < n)%nat) -> length l = n ->
  forall i, (i < n)%nat -> ~ In i l -> False.
Proof.
  intros D R L i Hi N.
  assert (I : incl (seq 0 n) l).
  { apply NoDup_length_incl; [assumption|rewrite seq_length; lia|]. intros x Hx. apply in_seq. specialize (R x Hx). lia. }
  apply N, I, in_seq. lia.
Qed.
End Sums.

Section Vectors.
Context {E : InnerSpace}.
Implicit Types x y z u w : E.
Lemma inner_zero_r x : x dot (vzero : E) = 0.
Proof. rewrite inner_sym. apply inner_zero_l. Qed.
Lemma inner_plus_r x y z : x dot (y +v z) = x dot y + x dot z.
Proof. rewrite inner_sym, inner_plus_l, (inner_sym _ y), (inner_sym _ z). reflexivity. Qed.
Lemma inner_scal_r r x y : x dot (r *v y) = r * (x dot y).
Proof. rewrite inner_sym, inner_scal_l, (inner_sym _ y). reflexivity. Qed.
Lemma inner_minus_l x y z : (x -v y) dot z = x dot z - y dot z.
Proof. unfold vminus. rewrite inner_plus_l, inner_scal_l. ring. Qed.
Lemma inner_minus_r x y z : z dot (x -v y) = z dot x - z dot y.
Proof. unfold vminus. rewrite inner_plus_r, inner_scal_r. ring. Qed.
Lemma inner_total_l n (f : nat -> E) w : vtotal n f dot w = total n (fun i => f i dot w).
Proof. induction n; simpl; [apply inner_zero_l|]. now rewrite inner_plus_l, IHn. Qed.
Lemma inner_total_r n (f : nat -> E) w : w dot vtotal n f = total n (fun i => w dot f i).
Proof. rewrite inner_sym, inner_total_l. apply total_ext. intros; apply inner_sym. Qed.
Lemma vtotal_ext n (f g : nat -> E) : (forall i, (i < n)%nat -> f i = g i) -> vtotal n f = vtotal n g.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, (H n); auto. Qed.

Lemma cauchy_schwarz x y : (x dot y) ^ 2 <= (x dot x) * (y dot y).
Proof.
  pose proof (inner_pos E x) as Px. pose proof (inner_pos E y) as Py.
  destruct (Req_dec (y dot y) 0) as [Z|N].
  - assert (A : forall r, 0 <= x dot x + 2 * r * (x dot y)).
    { intros r. pose proof (inner_pos E (x +v r *v y)) as P.
      rewrite inner_plus_l, !inner_plus_r, !inner_scal_l, !inner_scal_r, (inner_sym _ y x), Z in P. nra. }
    destruct (Req_dec (x dot y) 0) as [Q|Q]; [rewrite Q, Z; lra|]. exfalso.
    specialize (A (- (x dot x + 1) / (2 * (x dot y)))).
    replace (2 * (- (x dot x + 1) / (2 * (x dot y))) * (x dot y)) with (- (x dot x + 1)) in A by (field; assumption).
    lra.
  - pose proof (inner_pos E ((y dot y) *v x -v (x dot y) *v y)) as P.
    rewrite inner_minus_l, !inner_minus_r, !inner_scal_l, !inner_scal_r, (inner_sym _ y x) in P.
    assert (0 < y dot y) by lra.
    apply Rmult_le_reg_l with (y dot y); [assumption|]. nra.
Qed.

Lemma norm2_nonneg x : 0 <= norm2 x.
Proof. apply sqrt_pos. Qed.
Lemma norm2_square x : norm2 x * norm2 x = x dot x.
Proof. apply sqrt_sqrt, inner_pos. Qed.
Lemma norm2_zero : norm2 (vzero : E) = 0.
Proof. unfold norm2. rewrite inner_zero_l. apply sqrt_0. Qed.
Lemma norm2_scal r x : norm2 (r *v x) = Rabs r * norm2 x.
Proof.
  unfold norm2. rewrite inner_scal_l, inner_scal_r, <- Rmult_assoc, sqrt_mult; [|nra|apply inner_pos].
  change (r * r) with (Rsqr r). now rewrite sqrt_Rsqr_abs.
Qed.
Lemma inner_le_norm2 x y : Rabs (x dot y) <= norm2 x * norm2 y.
Proof.
  unfold norm2. rewrite <- sqrt_mult by apply inner_pos. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt.
  pose proof (cauchy_schwarz x y). unfold Rsqr. lra.
Qed.
Lemma norm2_triangle x y : norm2 (x +v y) <= norm2 x + norm2 y.
Proof.
  pose proof (norm2_nonneg x). pose proof (norm2_nonneg y).
  unfold norm2 at 1. rewrite <- (sqrt_Rsqr (norm2 x + norm2 y)) by lra. apply sqrt_le_1_alt.
  rewrite inner_plus_l, !inner_plus_r, (inner_sym _ y x).
  pose proof (inner_le_norm2 x y) as C. apply Rabs_le_between in C.
  pose proof (norm2_square x). pose proof (norm2_square y). unfold Rsqr. nra.
Qed.
Lemma norm2_power x : norm2 x ^ 2 = x dot x.
Proof. rewrite <- norm2_square. ring. Qed.
Lemma norm2_le x B : 0 <= B -> x dot x <= B ^ 2 -> norm2 x <= B.
Proof.
  intros HB H. unfold norm2. rewrite <- (sqrt_Rsqr B HB). apply sqrt_le_1_alt. unfold Rsqr. lra.
Qed.
Lemma norm2_lt_1 x : norm2 x < 1 -> x dot x < 1.
Proof. intros H. rewrite <- norm2_square. pose proof (norm2_nonneg x). nra. Qed.
Lemma norm2_total n (f : nat -> E) : norm2 (vtotal n f) <= total n (fun i => norm2 (f i)).
Proof.
  induction n; simpl; [rewrite norm2_zero; lra|]. eapply Rle_trans; [apply norm2_triangle|]. lra.
Qed.
Lemma norm2_eq x y : x = y -> norm2 (x -v y) = 0.
Proof.
  intros ->. unfold norm2. replace ((y -v y) dot (y -v y)) with 0; [apply sqrt_0|].
  rewrite inner_minus_l, !inner_minus_r. ring.
Qed.
End Vectors.

Section Limits.
Context {T : Type} (F : (T -> Prop) -> Prop) {FF : Filter F}.
Implicit Types f g h : T -> R.

Lemma tends_squeeze f g h : F (fun t => Rabs (f t - g t) <= h t) -> tends F h (fun _ => 0) -> tends F f g.
Proof.
  intros A B eps He. specialize (B eps He). generalize (filter_and _ _ A B). apply filter_imp.
  intros t [H1 H2]. rewrite Rminus_0_r in H2. apply Rle_lt_trans with (h t); [assumption|].
  apply Rle_lt_trans with (Rabs (h t)); [apply Rle_abs|assumption].
Qed.
Lemma tends_loc f g f' g' : F (fun t => f t = f' t) -> F (fun t => g t = g' t) -> tends F f' g' -> tends F f g.
Proof.
  intros A B C eps He. generalize (filter_and _ _ (filter_and _ _ A B) (C eps He)). apply filter_imp.
  intros t [[-> ->] H]. exact H.
Qed.
Lemma tends_eq f g : F (fun t => f t = g t) -> tends F f g.
Proof.
  intros A eps He. generalize A. apply filter_imp. intros t ->.
  rewrite Rminus_eq_0, Rabs_R0. assumption.
Qed.
Lemma tends_refl f : tends F f f.
Proof. apply tends_eq. apply filter_forall. reflexivity. Qed.
Lemma tends_trans f g h : tends F f g -> tends F g h -> tends F f h.
Proof.
  intros A B eps He. assert (H : 0 < eps / 2) by lra.
  generalize (filter_and _ _ (A _ H) (B _ H)). apply filter_imp. intros t [P Q].
  replace (f t - h t) with ((f t - g t) + (g t - h t)) by ring.
  eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma tends_sym f g : tends F f g -> tends F g f.
Proof. intros A eps He. generalize (A eps He). apply filter_imp. intros t. now rewrite Rabs_minus_sym. Qed.
Lemma tends_plus f f' g g' : tends F f f' -> tends F g g' -> tends F (fun t => f t + g t) (fun t => f' t + g' t).
Proof.
  intros A B eps He. assert (H : 0 < eps / 2) by lra.
  generalize (filter_and _ _ (A _ H) (B _ H)). apply filter_imp. intros t [P Q].
  replace (f t + g t - (f' t + g' t)) with ((f t - f' t) + (g t - g' t)) by ring.
  eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma tends_scal r f f' : tends F f f' -> tends F (fun t => r * f t) (fun t => r * f' t).
Proof.
  intros A eps He. pose proof (Rabs_pos r) as Hr.
  assert (H : 0 < eps / (Rabs r + 1)) by (apply Rdiv_lt_0_compat; lra).
  generalize (A _ H). apply filter_imp. intros t P.
  rewrite <- Rmult_minus_distr_l, Rabs_mult.
  apply Rle_lt_trans with (Rabs r * (eps / (Rabs r + 1))); [apply Rmult_le_compat_l; lra|].
  apply Rlt_le_trans with ((Rabs r + 1) * (eps / (Rabs r + 1))); [apply Rmult_lt_compat_r; lra|].
  right. field. lra.
Qed.
Lemma tends_opp f f' : tends F f f' -> tends F (fun t => - f t) (fun t => - f' t).
Proof.
  intros A. eapply tends_loc; [| |apply (tends_scal (-1) _ _ A)]; apply filter_forall; intros; ring.
Qed.
Lemma tends_minus f f' g g' : tends F f f' -> tends F g g' -> tends F (fun t => f t - g t) (fun t => f' t - g' t).
Proof. intros A B. apply tends_plus; [assumption|now apply tends_opp]. Qed.
Lemma tends_filterlim f l : tends F f (fun _ => l) <-> filterlim f F (locally l).
Proof.
  rewrite filterlim_locally. split.
  - intros A eps. exact (A eps (cond_pos eps)).
  - intros A eps He. exact (A (mkposreal eps He)).
Qed.
Lemma tends_mult f g a b : tends F f (fun _ => a) -> tends F g (fun _ => b) ->
  tends F (fun t => f t * g t) (fun _ => a * b).
Proof.
  rewrite !tends_filterlim. intros A B.
  eapply filterlim_comp_2; [exact A|exact B|].
  apply (filterlim_mult (K := R_AbsRing) a b).
Qed.
Lemma tends_inv f a : a <> 0 -> tends F f (fun _ => a) -> tends F (fun t => / f t) (fun _ => / a).
Proof.
  rewrite !tends_filterlim. intros N A. eapply filterlim_comp; [exact A|].
  apply (continuous_Rinv a N).
Qed.
Lemma tends_exp f a : tends F f (fun _ => a) -> tends F (fun t => exp (f t)) (fun _ => exp a).
Proof. rewrite !tends_filterlim. intros A. eapply filterlim_comp; [exact A|]. apply continuous_exp. Qed.
Lemma tends_total n (f : T -> nat -> R) (g : T -> nat -> R) :
  (forall i, (i < n)%nat -> tends F (fun t => f t i) (fun t => g t i)) ->
  tends F (fun t => total n (f t)) (fun t => total n (g t)).
Proof. induction n; simpl; intros H; [apply tends_refl|]. apply tends_plus; auto. Qed.

Context {E : InnerSpace}.
Implicit Types x y z : T -> E.
Lemma vtends_squeeze x y h : F (fun t => norm2 (x t -v y t) <= h t) -> tends F h (fun _ => 0) -> vtends F x y.
Proof.
  intros A B eps He. specialize (B eps He). generalize (filter_and _ _ A B). apply filter_imp.
  intros t [H1 H2]. rewrite Rminus_0_r in H2. apply Rle_lt_trans with (h t); [assumption|].
  apply Rle_lt_trans with (Rabs (h t)); [apply Rle_abs|assumption].
Qed.
Lemma vtends_tends x y : vtends F x y <-> tends F (fun t => norm2 (x t -v y t)) (fun _ => 0).
Proof.
  split; intros A eps He; generalize (A eps He); apply filter_imp; intros t;
    rewrite Rminus_0_r, Rabs_pos_eq by apply norm2_nonneg; auto.
Qed.
Lemma vtends_loc x y x' y' : F (fun t => x t = x' t) -> F (fun t => y t = y' t) -> vtends F x' y' -> vtends F x y.
Proof.
  intros A B C eps He. generalize (filter_and _ _ (filter_and _ _ A B) (C eps He)). apply filter_imp.
  intros t [[-> ->] H]. exact H.
Qed.
Lemma vtends_eq x y : F (fun t => x t = y t) -> vtends F x y.
Proof.
  intros A eps He. generalize A. apply filter_imp. intros t H. rewrite norm2_eq by exact H. assumption.
Qed.
Lemma vtends_refl x : vtends F x x.
Proof. apply vtends_eq. apply filter_forall. reflexivity. Qed.
Lemma vtends_trans x y z : vtends F x y -> vtends F y z -> vtends F x z.
Proof.
  intros A B eps He. assert (H : 0 < eps / 2) by lra.
  generalize (filter_and _ _ (A _ H) (B _ H)). apply filter_imp. intros t [P Q].
  replace (x t -v z t) with ((x t -v y t) +v (y t -v z t)).
  - eapply Rle_lt_trans; [apply norm2_triangle|]. lra.
  - apply vector_ext. intros w. rewrite inner_plus_l, !inner_minus_l. ring.
Qed.
Lemma vtends_sym x y : vtends F x y -> vtends F y x.
Proof.
  intros A eps He. generalize (A eps He). apply filter_imp. intros t H.
  replace (y t -v x t) with ((-1) *v (x t -v y t)).
  - rewrite norm2_scal, Rabs_left by lra. lra.
  - apply vector_ext. intros w. rewrite inner_scal_l, !inner_minus_l. ring.
Qed.
Lemma vtends_plus x x' y y' : vtends F x x' -> vtends F y y' -> vtends F (fun t => x t +v y t) (fun t => x' t +v y' t).
Proof.
  intros A B eps He. assert (H : 0 < eps / 2) by lra.
  generalize (filter_and _ _ (A _ H) (B _ H)). apply filter_imp. intros t [P Q].
  replace (x t +v y t -v (x' t +v y' t)) with ((x t -v x' t) +v (y t -v y' t)).
  - eapply Rle_lt_trans; [apply norm2_triangle|]. lra.
  - apply vector_ext. intros w. rewrite inner_plus_l, !inner_minus_l, !inner_plus_l. ring.
Qed.
Lemma vtends_scal r x x' : vtends F x x' -> vtends F (fun t => r *v x t) (fun t => r *v x' t).
Proof.
  rewrite !vtends_tends. intros A.
  eapply tends_loc; [| |apply (tends_scal (Rabs r) _ _ A)]; apply filter_forall; intros t; [|ring].
  rewrite <- norm2_scal. f_equal. apply vector_ext. intros w.
  rewrite inner_scal_l, !inner_minus_l, !inner_scal_l. ring.
Qed.
Lemma vtends_minus x x' y y' : vtends F x x' -> vtends F y y' -> vtends F (fun t => x t -v y t) (fun t => x' t -v y' t).
Proof. intros A B. apply vtends_plus; [assumption|]. now apply vtends_scal. Qed.
Lemma vtends_weight f g (v : E) : tends F f g -> vtends F (fun t => f t *v v) (fun t => g t *v v).
Proof.
  intros A. apply vtends_squeeze with (fun t => Rabs (f t - g t) * norm2 v).
  - apply filter_forall. intros t. right. rewrite <- norm2_scal. f_equal. apply vector_ext. intros w.
    rewrite inner_minus_l, !inner_scal_l. ring.
  - intros eps He. pose proof (norm2_nonneg v) as Hv.
    assert (H : 0 < eps / (norm2 v + 1)) by (apply Rdiv_lt_0_compat; lra).
    generalize (A _ H). apply filter_imp. intros t P.
    rewrite Rminus_0_r, Rabs_pos_eq by (apply Rmult_le_pos; [apply Rabs_pos|assumption]).
    apply Rle_lt_trans with (eps / (norm2 v + 1) * norm2 v); [apply Rmult_le_compat_r; lra|].
    apply Rlt_le_trans with (eps / (norm2 v + 1) * (norm2 v + 1)); [apply Rmult_lt_compat_l; lra|].
    right. field. lra.
Qed.
Lemma vtends_total n (f g : T -> nat -> E) :
  (forall i, (i < n)%nat -> vtends F (fun t => f t i) (fun t => g t i)) ->
  vtends F (fun t => vtotal n (f t)) (fun t => vtotal n (g t)).
Proof. induction n; simpl; intros H; [apply vtends_refl|]. apply vtends_plus; auto. Qed.
(* Inner products are continuous. *)
Lemma tends_inner x y (a b : E) : vtends F x (fun _ => a) -> vtends F y (fun _ => b) ->
  tends F (fun t => x t dot y t) (fun _ => a dot b).
Proof.
  intros A B. rewrite vtends_tends in A, B.
  apply tends_squeeze with (fun t => norm2 (x t -v a) * norm2 (y t -v b) + norm2 a * norm2 (y t -v b)
                                     + norm2 b * norm2 (x t -v a)).
  - apply filter_forall. intros t.
    replace (x t dot y t - a dot b) with ((x t -v a) dot (y t -v b) + a dot (y t -v b) + b dot (x t -v a)).
    + eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [|apply inner_le_norm2].
      eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; apply inner_le_norm2.
    + rewrite inner_minus_l, !inner_minus_r, (inner_sym _ b a), (inner_sym _ b (x t)). ring.
  - eapply tends_loc with (g' := fun _ => 0 * 0 + norm2 a * 0 + norm2 b * 0);
      [apply filter_forall; reflexivity|apply filter_forall; intros; ring|].
    apply tends_plus; [apply tends_plus|]; [now apply tends_mult|now apply tends_scal|now apply tends_scal].
Qed.
End Limits.

(* tends to a number at infinity is Coquelicot's is_lim. *)
Lemma tends_is_lim f l : tends at_infinity f (fun _ => l) <-> is_lim f p_infty l.
Proof. apply tends_filterlim. apply Rbar_locally_filter. Qed.

Section Softmax.
Lemma total_exp_pos n s i : (i < n)%nat -> 0 < total n (fun j => exp (s j)).
Proof. intros H. apply total_pos; [lia|]. intros; apply exp_pos. Qed.
Lemma softmax_pos n s i : (i < n)%nat -> 0 < softmax n s i.
Proof. intros H. apply Rdiv_lt_0_compat; [apply exp_pos|]. now apply total_exp_pos with i. Qed.
Lemma softmax_sum n s : (1 <= n)%nat -> total n (softmax n s) = 1.
Proof.
  intros H. assert (P : 0 < total n (fun j => exp (s j))) by (apply total_exp_pos with 0%nat; lia).
  rewrite (total_ext n (softmax n s) (fun i => / total n (fun j => exp (s j)) * exp (s i))).
  - rewrite total_scal. field. lra.
  - intros. unfold softmax, Rdiv. ring.
Qed.
Lemma softmax_le_1 n s i : (i < n)%nat -> softmax n s i <= 1.
Proof.
  intros H. rewrite <- (softmax_sum n s) by lia.
  rewrite (total_split n [i] (softmax n s)); [|repeat constructor; simpl; tauto|simpl; intros ? [<-|[]]; assumption].
  simpl. assert (0 <= total_but n [i] (softmax n s)); [|lra].
  apply total_nonneg. intros j Hj. destruct (existsb _ _); [lra|left; now apply softmax_pos].
Qed.
Lemma softmax_lt n s i j : (i < n)%nat -> s i < s j -> softmax n s i < softmax n s j.
Proof.
  intros H L. apply Rmult_lt_compat_r; [apply Rinv_0_lt_compat; now apply total_exp_pos with i|].
  now apply exp_increasing.
Qed.
Lemma softmax_le n s i j : (i < n)%nat -> s i <= s j -> softmax n s i <= softmax n s j.
Proof. intros H [L|L]; [left; now apply softmax_lt|right]. unfold softmax. now rewrite L. Qed.
Lemma softmax_ext n s s' i : (i < n)%nat -> (forall j, (j < n)%nat -> s j = s' j) -> softmax n s i = softmax n s' i.
Proof. intros H A. unfold softmax. rewrite A by assumption. f_equal. apply total_ext. intros. now rewrite A. Qed.
Lemma softmax_below n s i j g : (i < n)%nat -> (j < n)%nat -> s i <= s j - g -> softmax n s i <= exp (- g).
Proof.
  intros Hi Hj L. assert (P : 0 < total n (fun j => exp (s j))) by (apply total_exp_pos with i; lia).
  assert (Q : exp (s j) <= total n (fun j => exp (s j))).
  { rewrite (total_split n [j]); [|repeat constructor; simpl; tauto|simpl; intros ? [<-|[]]; assumption]. simpl.
    assert (0 <= total_but n [j] (fun j => exp (s j))); [|lra].
    apply total_nonneg. intros x Hx. destruct (existsb _ _); [lra|left; apply exp_pos]. }
  apply Rmult_le_reg_r with (total n (fun j => exp (s j))); [assumption|].
  unfold softmax, Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_trans with (exp (- g) * exp (s j)).
  - rewrite <- exp_plus. destruct L as [L|L]; [left; apply exp_increasing; lra|right; f_equal; lra].
  - apply Rmult_le_compat_l; [left; apply exp_pos|assumption].
Qed.
(* The items of a list l share the highest score, and every other score lies lower by a gap g. *)
Definition on_top (n : nat) (l : list nat) (s : nat -> R) (top g : R) : Prop :=
  (forall i, In i l -> s i = top) /\ (forall i, (i < n)%nat -> ~ In i l -> s i <= top - g).
Lemma softmax_top n l s top g i : NoDup l -> (forall i, In i l -> (i < n)%nat) -> l <> [] -> on_top n l s top g ->
  (i < n)%nat -> Rabs (softmax n s i - (if existsb (Nat.eqb i) l then / INR (length l) else 0)) <= INR n * exp (- g).
Proof.
  intros D Rg NE [Top Low] Hi.
  destruct l as [|j l']; [congruence|]. set (l := j :: l') in *.
  assert (Hj : In j l) by (left; reflexivity).
  assert (Bound : forall x, (x < n)%nat -> ~ In x l -> softmax n s x <= exp (- g)).
  { intros x Hx N. apply softmax_below with j; auto. rewrite (Top j Hj). auto. }
  assert (Hn : 1 <= INR n) by (apply (le_INR 1); lia).
  pose proof (exp_pos (- g)) as Pe.
  destruct (existsb (Nat.eqb i) l) eqn:Ex.
  - apply existsb_in in Ex.
    assert (Same : forall x, In x l -> softmax n s x = softmax n s i).
    { intros x Hx. unfold softmax. now rewrite (Top x Hx), (Top i Ex). }
    pose proof (softmax_sum n s ltac:(lia)) as Sum.
    rewrite (total_split n l) in Sum by assumption.
    rewrite (over_ext l _ (fun _ => softmax n s i) Same), over_const in Sum.
    assert (Rest : 0 <= total_but n l (softmax n s) <= INR n * exp (- g)).
    { split.
      - apply total_nonneg. intros x Hx. destruct (existsb _ _); [lra|left; now apply softmax_pos].
      - rewrite <- total_const. apply total_le. intros x Hx. destruct (existsb (Nat.eqb x) l) eqn:Ey; [lra|].
        apply Bound; [assumption|]. intros C. apply existsb_in in C. congruence. }
    assert (Hl : 1 <= INR (length l)) by (apply (le_INR 1); simpl; lia).
    replace (softmax n s i - / INR (length l)) with (- (total_but n l (softmax n s) / INR (length l))).
    + rewrite Rabs_Ropp, Rabs_pos_eq.
      * apply Rle_trans with (total_but n l (softmax n s)); [|tauto].
        apply Rmult_le_reg_r with (INR (length l)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. nra.
      * apply Rmult_le_pos; [tauto|left; apply Rinv_0_lt_compat; lra].
    + replace (total_but n l (softmax n s)) with (1 - INR (length l) * softmax n s i) by lra. field. lra.
  - rewrite Rminus_0_r, Rabs_pos_eq by (left; now apply softmax_pos).
    assert (N : ~ In i l) by (intros C; apply existsb_in in C; congruence).
    specialize (Bound i Hi N). nra.
Qed.

Context {T : Type} (F : (T -> Prop) -> Prop) {FF : Filter F}.
Definition to_infinity (g : T -> R) : Prop := forall M, F (fun t => M < g t).
Lemma exp_gap g : to_infinity g -> tends F (fun t => exp (- g t)) (fun _ => 0).
Proof.
  intros G eps He. generalize (G (- ln eps)). apply filter_imp. intros t H.
  rewrite Rminus_0_r, Rabs_pos_eq by (left; apply exp_pos). rewrite <- (exp_ln eps He). apply exp_increasing. lra.
Qed.
(* The limit of the weights by the fastest terms. *)
Lemma softmax_tends n l (s : T -> nat -> R) (top g : T -> R) i : NoDup l -> (forall i, In i l -> (i < n)%nat) ->
  l <> [] -> F (fun t => on_top n l (s t) (top t) (g t)) -> to_infinity g -> (i < n)%nat ->
  tends F (fun t => softmax n (s t) i) (fun _ => if existsb (Nat.eqb i) l then / INR (length l) else 0).
Proof.
  intros D R NE Top G Hi. apply tends_squeeze with (fun t => INR n * exp (- g t)); [assumption| |].
  - generalize Top. apply filter_imp. intros t H. now apply softmax_top with (top t).
  - eapply tends_loc with (g' := fun _ => INR n * 0);
      [assumption|apply filter_forall; reflexivity|apply filter_forall; intros; ring|].
    apply tends_scal; [assumption|]. now apply exp_gap.
Qed.
Lemma softmax_continuous n (s : T -> nat -> R) s0 i : (i < n)%nat ->
  (forall j, (j < n)%nat -> tends F (fun t => s t j) (fun _ => s0 j)) ->
  tends F (fun t => softmax n (s t) i) (fun _ => softmax n s0 i).
Proof.
  intros Hi H. unfold softmax, Rdiv. apply tends_mult; [assumption|apply tends_exp; auto|].
  apply tends_inv; [assumption|apply Rgt_not_eq; now apply total_exp_pos with i|].
  apply tends_total with (f := fun t j => exp (s t j)) (g := fun _ j => exp (s0 j)); [assumption|].
  intros j Hj. apply tends_exp; auto.
Qed.

Lemma softmax_gap n s j m : (j < n)%nat -> (forall i, (i < n)%nat -> i <> j -> s j - s i >= m) ->
  1 / (1 + (INR n - 1) * exp (- m)) <= softmax n s j.
Proof.
  intros Hj H. assert (Hn : 1 <= INR n) by (apply (le_INR 1); lia).
  pose proof (exp_pos (s j)) as Pj. pose proof (exp_pos (- m)) as Pm.
  assert (L : total n (fun i => exp (s i)) <= exp (s j) * (1 + (INR n - 1) * exp (- m))).
  { apply Rle_trans with (total n (fun i => if Nat.eqb i j then exp (s j) else exp (s j) * exp (- m))).
    - apply total_le. intros i Hi. destruct (Nat.eqb_spec i j) as [->|N]; [lra|].
      rewrite <- exp_plus. specialize (H i Hi N).
      destruct (Req_dec (s i) (s j + - m)) as [->|D]; [lra|]. left. apply exp_increasing. lra.
    - rewrite (total_named n [j] _ (exp (s j) * exp (- m))).
      + simpl. rewrite Nat.eqb_refl. lra.
      + repeat constructor; simpl; tauto.
      + simpl; intros ? [<-|[]]; assumption.
      + intros i Hi N. destruct (Nat.eqb_spec i j) as [->|D]; [exfalso; apply N; left; reflexivity|reflexivity]. }
  pose proof (total_exp_pos n s j Hj) as Pt.
  assert (0 < 1 + (INR n - 1) * exp (- m)) by nra.
  unfold softmax. apply Rmult_le_reg_r with (total n (fun i => exp (s i))); [assumption|].
  unfold Rdiv at 2. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rmult_le_reg_r with (1 + (INR n - 1) * exp (- m)); [assumption|].
  replace (1 / (1 + (INR n - 1) * exp (- m)) * total n (fun i => exp (s i)) * (1 + (INR n - 1) * exp (- m)))
    with (total n (fun i => exp (s i))) by (field; lra). exact L.
Qed.
Lemma softmax_majority n s j m : (2 <= n)%nat -> (j < n)%nat -> (forall i, (i < n)%nat -> i <> j -> s j - s i >= m) ->
  m > ln (INR n - 1) -> softmax n s j > total_but n [j] (fun i => softmax n s i).
Proof.
  intros H2 Hj H Hm. pose proof (softmax_gap n s j m Hj H) as G.
  assert (Hn : 2 <= INR n) by (replace 2 with (INR 2) by (simpl; ring); apply le_INR; lia).
  assert (S : (INR n - 1) * exp (- m) < 1).
  { rewrite <- (exp_ln (INR n - 1)) by lra. rewrite <- exp_plus.
    apply Rlt_le_trans with (exp 0); [apply exp_increasing; lra|rewrite exp_0; lra]. }
  pose proof (exp_pos (- m)) as Pm.
  assert (1 / 2 < 1 / (1 + (INR n - 1) * exp (- m))).
  { apply Rmult_lt_compat_l; [lra|]. apply Rinv_lt_contravar; nra. }
  pose proof (softmax_sum n s ltac:(lia)) as One.
  rewrite (total_split n [j] (softmax n s)) in One; [|repeat constructor; simpl; tauto|simpl; intros ? [<-|[]]; assumption].
  simpl in One. change (total_but n [j] (fun i => softmax n s i)) with (total_but n [j] (softmax n s)). lra.
Qed.

(* Outputs. Values may move, as long as the gap outgrows them. *)
Context {E V : InnerSpace}.
Definition average (l : list nat) (v : nat -> V) : V :=
  (/ INR (length l)) *v fold_right (fun i s => v i +v s) vzero l.
Lemma inner_average l (v : nat -> V) w : average l v dot w = / INR (length l) * over l (fun i => v i dot w).
Proof.
  unfold average. rewrite inner_scal_l. f_equal. induction l; simpl; [apply inner_zero_l|].
  now rewrite inner_plus_l, IHl.
Qed.
Lemma inner_average_r l (v : nat -> V) w : w dot average l v = / INR (length l) * over l (fun i => w dot v i).
Proof. rewrite inner_sym, inner_average. f_equal. apply over_ext. intros. apply inner_sym. Qed.
Lemma average_weights n l (v : nat -> V) : NoDup l -> (forall i, In i l -> (i < n)%nat) ->
  average l v = vtotal n (fun i => (if existsb (Nat.eqb i) l then / INR (length l) else 0) *v v i).
Proof.
  intros D R. apply vector_ext. intros w. rewrite inner_average, inner_total_l.
  rewrite (total_support n l).
  - rewrite <- over_scal. apply over_ext.
    intros i Hi. apply existsb_in in Hi. rewrite Hi, inner_scal_l. reflexivity.
  - assumption.
  - assumption.
  - intros i Hi N. rewrite existsb_out, inner_scal_l by assumption. ring.
Qed.
Lemma attend_tends_moving n l (k : T -> nat -> E) (q : T -> E) (v : T -> nat -> V) (top g B : T -> R) :
  NoDup l -> (forall i, In i l -> (i < n)%nat) -> l <> [] ->
  F (fun t => on_top n l (fun i => k t i dot q t) (top t) (g t)) ->
  F (fun t => forall i, (i < n)%nat -> norm2 (v t i) <= B t) ->
  tends F (fun t => B t * exp (- g t)) (fun _ => 0) ->
  vtends F (fun t => attend n (k t) (v t) (q t)) (fun t => average l (v t)).
Proof.
  intros D R NE Top HB G. apply vtends_squeeze with (fun t => (INR n * INR n) * (B t * exp (- g t))); [assumption| |].
  - generalize (filter_and _ _ Top HB). apply filter_imp. intros t [H HBt].
    rewrite (average_weights n) by assumption.
    replace (attend n (k t) (v t) (q t) -v
             vtotal n (fun i => (if existsb (Nat.eqb i) l then / INR (length l) else 0) *v v t i))
      with (vtotal n (fun i => (alpha n (k t) (q t) i - (if existsb (Nat.eqb i) l then / INR (length l) else 0)) *v v t i)).
    + eapply Rle_trans; [apply norm2_total|].
      replace (INR n * INR n * (B t * exp (- g t))) with (INR n * (INR n * exp (- g t) * B t)) by ring.
      rewrite <- total_const. apply total_le.
      intros i Hi. rewrite norm2_scal. apply Rmult_le_compat; [apply Rabs_pos|apply norm2_nonneg| |auto].
      now apply softmax_top with (top t).
    + unfold attend. apply vector_ext. intros w. rewrite inner_minus_l, !inner_total_l.
      set (X := total n _). set (Y := total n _). set (Z := total n _).
      assert (Y = X + Z); [|lra]. unfold X, Y, Z. rewrite <- total_plus. apply total_ext.
      intros. rewrite !inner_scal_l. ring.
  - eapply tends_loc with (g' := fun _ => INR n * INR n * 0);
      [assumption|apply filter_forall; reflexivity|apply filter_forall; intros; ring|].
    now apply tends_scal.
Qed.
Lemma attend_tends n l (k : T -> nat -> E) (q : T -> E) (v : nat -> V) (top g : T -> R) :
  NoDup l -> (forall i, In i l -> (i < n)%nat) -> l <> [] ->
  F (fun t => on_top n l (fun i => k t i dot q t) (top t) (g t)) -> to_infinity g ->
  vtends F (fun t => attend n (k t) v (q t)) (fun _ => average l v).
Proof.
  intros D R NE Top G. apply attend_tends_moving with (top := top) (g := g) (B := fun _ => total n (fun i => norm2 (v i)));
    try assumption.
  - apply filter_forall. intros _ i Hi. rewrite (total_split n [i]).
    + simpl. assert (0 <= total_but n [i] (fun i => norm2 (v i))); [|lra].
      apply total_nonneg. intros x Hx. destruct (existsb _ _); [lra|apply norm2_nonneg].
    + repeat constructor; simpl; tauto.
    + simpl; intros ? [<-|[]]; assumption.
  - eapply tends_loc with (g' := fun _ => total n (fun i => norm2 (v i)) * 0);
      [assumption|apply filter_forall; reflexivity|apply filter_forall; intros; ring|].
    apply tends_scal; [assumption|]. now apply exp_gap.
Qed.
Lemma alpha_continuous n (k : T -> nat -> E) (k0 : nat -> E) (q : E) i : (i < n)%nat ->
  (forall j, (j < n)%nat -> vtends F (fun t => k t j) (fun _ => k0 j)) ->
  tends F (fun t => alpha n (k t) q i) (fun _ => alpha n k0 q i).
Proof.
  intros Hi H. apply softmax_continuous; [assumption|]. intros j Hj.
  apply (tends_inner F (fun t => k t j) (fun _ => q)); [auto|]. now apply vtends_refl.
Qed.
Lemma attend_continuous n (k : T -> nat -> E) (k0 : nat -> E) (v : nat -> V) (q : E) :
  (forall j, (j < n)%nat -> vtends F (fun t => k t j) (fun _ => k0 j)) ->
  vtends F (fun t => attend n (k t) v q) (fun _ => attend n k0 v q).
Proof.
  intros H. unfold attend.
  apply vtends_total with (f := fun t i => alpha n (k t) q i *v v i) (g := fun _ i => alpha n k0 q i *v v i); [assumption|].
  intros i Hi. apply vtends_weight with (f := fun t => alpha n (k t) q i) (g := fun _ => alpha n k0 q i); [assumption|].
  now apply alpha_continuous.
Qed.
End Softmax.

(* ---- Scores with a gap ---- *)

Section Gaps.
Lemma inf_id : to_infinity at_infinity (fun t => t).
Proof. intros M. exists M. auto. Qed.
Lemma inf_ln : to_infinity at_infinity ln.
Proof.
  intros M. exists (exp M). intros t Ht. rewrite <- (ln_exp M). apply ln_increasing; [apply exp_pos|assumption].
Qed.
Lemma inf_square : to_infinity at_infinity (fun t => t ^ 2).
Proof. intros M. exists (Rabs M + 1). intros t Ht. pose proof (Rle_abs M). pose proof (Rabs_pos M). nra. Qed.
Lemma inf_scal {T} (F : (T -> Prop) -> Prop) {FF : Filter F} c g : 0 < c -> to_infinity F g ->
  to_infinity F (fun t => c * g t).
Proof.
  intros Hc G M. generalize (G (M / c)). apply filter_imp. intros t H.
  replace M with (c * (M / c)) by (field; lra). apply Rmult_lt_compat_l; assumption.
Qed.
Lemma inf_gap {T} (F : (T -> Prop) -> Prop) {FF : Filter F} g h : F (fun t => g t <= h t) -> to_infinity F g ->
  to_infinity F h.
Proof. intros L G M. generalize (filter_and _ _ L (G M)). apply filter_imp. intros t [A B]. lra. Qed.
(* An exponential outgrows a multiple of the scale. *)
Lemma outgrows r c : 0 < r -> tends at_infinity (fun b => c * b * exp (- (r * b ^ 2))) (fun _ => 0).
Proof.
  intros Hr eps He. exists (Rmax 1 (Rabs c / (r * eps))). intros b Hb.
  pose proof (Rmax_l 1 (Rabs c / (r * eps))). pose proof (Rmax_r 1 (Rabs c / (r * eps))).
  assert (b1 : 1 < b) by lra. assert (Pb : 0 < r * b ^ 2) by (apply Rmult_lt_0_compat; nra).
  assert (L : exp (- (r * b ^ 2)) <= / (r * b ^ 2)).
  { rewrite exp_Ropp. apply Rinv_le_contravar; [assumption|]. pose proof (exp_ineq1 (r * b ^ 2)). lra. }
  rewrite Rminus_0_r, !Rabs_mult, (Rabs_pos_eq b), (Rabs_pos_eq (exp _)); [|left; apply exp_pos|lra].
  apply Rle_lt_trans with (Rabs c * b * / (r * b ^ 2)).
  - apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [apply Rabs_pos|lra].
  - replace (Rabs c * b * / (r * b ^ 2)) with (Rabs c / r / b) by (field; split; lra).
    apply Rmult_lt_reg_r with b; [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    apply Rmult_lt_reg_l with (/ eps); [now apply Rinv_0_lt_compat|].
    replace (/ eps * (Rabs c / r)) with (Rabs c / (r * eps)) by (field; split; lra).
    replace (/ eps * (eps * b)) with b by (field; lra). lra.
Qed.
(* Finitely many positive numbers have a positive lower bound. *)
Lemma lower_bound n (P : nat -> Prop) (d : nat -> R) : (forall i, (i < n)%nat -> P i -> 0 < d i) ->
  exists r, 0 < r /\ forall i, (i < n)%nat -> P i -> r <= d i.
Proof.
  induction n as [|n IH]; intros H.
  - exists 1. split; [lra|]. intros; lia.
  - destruct IH as (r & Hr & L); [intros; apply H; [lia|assumption]|].
    destruct (Rlt_dec 0 (d n)) as [Hd|Hd].
    + exists (Rmin r (d n)). split; [now apply Rmin_pos|]. intros i Hi Pi.
      destruct (Nat.eq_dec i n) as [->|N]; [apply Rmin_r|].
      eapply Rle_trans; [apply Rmin_l|]. apply L; [lia|assumption].
    + exists r. split; [assumption|]. intros i Hi Pi. destruct (Nat.eq_dec i n) as [->|N].
      * exfalso. apply Hd, H; [lia|assumption].
      * apply L; [lia|assumption].
Qed.
Lemma tends_linear f g c : (forall e, 0 < e -> f e - g e = c * e) -> tends above_zero f g.
Proof.
  intros H eps He. pose proof (Rabs_pos c) as Pc. assert (P : 0 < eps / (Rabs c + 1)) by (apply Rdiv_lt_0_compat; lra).
  exists (mkposreal _ P). intros y By Hy. rewrite (H y Hy), Rabs_mult, (Rabs_pos_eq y) by lra.
  unfold ball in By. simpl in By. unfold AbsRing_ball, abs, minus, plus, opp in By. simpl in By.
  rewrite Ropp_0, Rplus_0_r, Rabs_pos_eq in By by lra.
  apply Rle_lt_trans with (Rabs c * (eps / (Rabs c + 1))); [apply Rmult_le_compat_l; lra|].
  apply Rlt_le_trans with ((Rabs c + 1) * (eps / (Rabs c + 1))); [apply Rmult_lt_compat_r; lra|].
  right. field. lra.
Qed.
(* The noise vanishes. *)
Lemma vanishing_noise {E : InnerSpace} (m z : E) : vtends above_zero (fun eps => m +v sqrt eps *v z) (fun _ => m).
Proof.
  apply vtends_squeeze with (fun eps => norm2 z * sqrt eps).
  - apply within_filter, locally_filter.
  - apply filter_forall. intros eps. right.
    replace (m +v sqrt eps *v z -v m) with (sqrt eps *v z).
    + rewrite norm2_scal, Rabs_pos_eq by apply sqrt_pos. ring.
    + apply vector_ext. intros w. rewrite inner_minus_l, inner_plus_l. ring.
  - eapply tends_loc with (g' := fun _ => norm2 z * 0).
    + apply within_filter, locally_filter.
    + apply filter_forall; reflexivity.
    + apply filter_forall; intros; ring.
    + apply tends_scal; [apply within_filter, locally_filter|].
      intros e He. exists (mkposreal (e * e) (Rmult_lt_0_compat e e He He)). intros y By Hy.
      rewrite Rminus_0_r, Rabs_pos_eq by apply sqrt_pos.
      rewrite <- (sqrt_square e) by lra. apply sqrt_lt_1_alt. split; [lra|].
      unfold ball in By. simpl in By. unfold AbsRing_ball, abs, minus, plus, opp in By. simpl in By.
      rewrite Ropp_0, Rplus_0_r, Rabs_pos_eq in By by lra. exact By.
Qed.
End Gaps.

(* ---- Bases ---- *)

Section Bases.
Context {E : InnerSpace}.
Lemma coordinates_combine m (a : nat -> E) x i : orthonormal m a -> (i < m)%nat -> coordinates a (combine m a x) i = x i.
Proof.
  intros O Hi. unfold coordinates, combine. rewrite inner_total_r.
  rewrite (total_support m [i]).
  - simpl. rewrite inner_scal_r, O, Nat.eqb_refl by assumption. ring.
  - repeat constructor; simpl; tauto.
  - simpl; intros ? [<-|[]]; assumption.
  - intros j Hj N. rewrite inner_scal_r, O by assumption. destruct (Nat.eqb_spec i j); [|ring].
    exfalso. apply N. left. assumption.
Qed.
Lemma coordinates_other m p (a b : nat -> E) y i : right_angles m p a b -> (i < m)%nat ->
  coordinates a (combine p b y) i = 0.
Proof.
  intros A Hi. unfold coordinates, combine. rewrite inner_total_r. apply total_zero. intros j Hj.
  rewrite inner_scal_r, A by assumption. ring.
Qed.
Lemma right_angles_sym m p (a b : nat -> E) : right_angles m p a b -> right_angles p m b a.
Proof. intros A i j Hi Hj. rewrite inner_sym. now apply A. Qed.
Lemma coordinates_plus (a : nat -> E) x y i : coordinates a (x +v y) i = coordinates a x i + coordinates a y i.
Proof. apply inner_plus_r. Qed.
Lemma coordinates_minus (a : nat -> E) x y i : coordinates a (x -v y) i = coordinates a x i - coordinates a y i.
Proof. apply inner_minus_r. Qed.
Lemma coordinates_scal (a : nat -> E) r x i : coordinates a (r *v x) i = r * coordinates a x i.
Proof. apply inner_scal_r. Qed.
Lemma coordinates_zero (a : nat -> E) i : coordinates a (vzero : E) i = 0.
Proof. apply inner_zero_r. Qed.
Lemma inner_combine m (a : nat -> E) x w : combine m a x dot w = total m (fun i => x i * (a i dot w)).
Proof. unfold combine. rewrite inner_total_l. apply total_ext. intros. apply inner_scal_l. Qed.
Lemma inner_combine_r m (a : nat -> E) x w : w dot combine m a x = total m (fun i => x i * (a i dot w)).
Proof. rewrite inner_sym. apply inner_combine. Qed.
Lemma combine_ext m (a : nat -> E) x y : (forall i, (i < m)%nat -> x i = y i) -> combine m a x = combine m a y.
Proof. intros H. apply vtotal_ext. intros. now rewrite H. Qed.
Lemma projected_same m (a : nat -> E) x : orthonormal m a -> combine m a (coordinates a (combine m a x)) = combine m a x.
Proof. intros O. apply combine_ext. intros. now apply coordinates_combine. Qed.
Lemma projected_other m p (a b : nat -> E) y : right_angles m p a b ->
  combine m a (coordinates a (combine p b y)) = vzero.
Proof.
  intros A. apply vector_ext. intros w. rewrite inner_combine, inner_zero_l. apply total_zero. intros i Hi.
  rewrite (coordinates_other m p) by assumption. ring.
Qed.
Lemma projected_plus m (a : nat -> E) x y :
  combine m a (coordinates a (x +v y)) = combine m a (coordinates a x) +v combine m a (coordinates a y).
Proof.
  apply vector_ext. intros w. rewrite inner_plus_l, !inner_combine, <- total_plus. apply total_ext. intros.
  rewrite coordinates_plus. ring.
Qed.
Lemma vtotal_outer m (a : nat -> E) y : vtotal m (fun i => outer (a i) (a i) y) = combine m a (coordinates a y).
Proof. reflexivity. Qed.
End Bases.

(* ---- Expectations ---- *)

Section Moments.
Context {O : Type} (M : Expectation O) {E : InnerSpace}.
Lemma moments_mean (K : O -> E) m S u : moments M K m S -> M (fun o => u dot K o) = u dot m.
Proof. intros [A _]. apply A. Qed.
Lemma moments_covariance (K : O -> E) m S u w : moments M K m S ->
  covariance M (fun o => u dot K o) (fun o => w dot K o) = u dot S w.
Proof.
  intros [A B]. unfold covariance. rewrite !A. apply B.
Qed.
Lemma covariance_ext (X X' Y Y' : O -> R) : (forall o, X o = X' o) -> (forall o, Y o = Y' o) ->
  covariance M X Y = covariance M X' Y'.
Proof.
  intros A B. unfold covariance. apply mean_ext. intros o.
  rewrite (A o), (B o), (mean_ext _ M X X' A), (mean_ext _ M Y Y' B). reflexivity.
Qed.
Lemma moments_rules (K : O -> E) m S : moments M K m S ->
  (forall u, mean _ M (fun o => u dot K o) = u dot m) /\ (forall u, mean _ M (fun o => K o dot u) = u dot m)
  /\ (forall u, variance M (fun o => u dot K o) = u dot S u) /\ (forall u, variance M (fun o => K o dot u) = u dot S u)
  /\ (forall u w, covariance M (fun o => u dot K o) (fun o => w dot K o) = u dot S w)
  /\ (forall u w, covariance M (fun o => K o dot u) (fun o => K o dot w) = u dot S w).
Proof.
  intros H. repeat split; intros u.
  - now apply (moments_mean K m S).
  - rewrite <- (moments_mean K m S u H). apply mean_ext. intros. apply inner_sym.
  - now apply (moments_covariance K m).
  - unfold variance. rewrite <- (moments_covariance K m S u u H). apply covariance_ext; intros; apply inner_sym.
  - intros w. now apply (moments_covariance K m).
  - intros w. rewrite <- (moments_covariance K m S u w H). apply covariance_ext; intros; apply inner_sym.
Qed.
End Moments.

(* ---- R^d is an inner product space, and it has orthonormal families ---- *)

Section Euclidean.
Fixpoint tuple (d : nat) : Type := match d with O => unit | S m => (R * tuple m)%type end.
Fixpoint tzero d : tuple d := match d with O => tt | S m => (0, tzero m) end.
Fixpoint tplus d : tuple d -> tuple d -> tuple d :=
  match d with O => fun _ _ => tt | S m => fun x y => (fst x + fst y, tplus m (snd x) (snd y)) end.
Fixpoint tscal d (r : R) : tuple d -> tuple d :=
  match d with O => fun _ => tt | S m => fun x => (r * fst x, tscal m r (snd x)) end.
Fixpoint tinner d : tuple d -> tuple d -> R :=
  match d with O => fun _ _ => 0 | S m => fun x y => fst x * fst y + tinner m (snd x) (snd y) end.
Definition euclidean (d : nat) : InnerSpace.
Proof.
  refine (Build_InnerSpace (tuple d) (tzero d) (tplus d) (tscal d) (tinner d) _ _ _ _ _ _).
  - induction d; simpl; intros; [reflexivity|]. rewrite IHd. ring.
  - induction d; simpl; intros; [reflexivity|]. rewrite IHd. ring.
  - induction d; simpl; intros; [ring|]. rewrite IHd. ring.
  - induction d; simpl; intros; [ring|]. rewrite IHd. ring.
  - induction d; simpl; intros x; [right; reflexivity|]. apply Rplus_le_le_0_compat; [apply Rle_0_sqr|apply IHd].
  - assert (Z : forall d (x : tuple d), tinner d x (tzero d) = 0).
    { clear. induction d; simpl; intros; [reflexivity|]. rewrite IHd. ring. }
    induction d; intros x y H; [now destruct x, y|]. destruct x as [a x], y as [b y].
    assert (a = b).
    { specialize (H (1, tzero d)). simpl in H. rewrite !Z in H. lra. }
    subst b. f_equal. apply IHd. intros w. specialize (H (0, w)). simpl in H. lra.
Defined.
Fixpoint unit_vector d (i : nat) : tuple d :=
  match d with
  | O => tt
  | S m => match i with O => (1, tzero m) | S j => (0, unit_vector m j) end
  end.
Lemma orthonormal_exists d : orthonormal (E := euclidean d) d (unit_vector d).
Proof.
  assert (Z : forall d (x : tuple d), tinner d x (tzero d) = 0).
  { clear. induction d; simpl; intros; [reflexivity|]. rewrite IHd. ring. }
  assert (Z' : forall d (x : tuple d), tinner d (tzero d) x = 0).
  { clear. induction d; simpl; intros; [reflexivity|]. rewrite IHd. ring. }
  unfold orthonormal; simpl. induction d; intros i j Hi Hj; [lia|].
  destruct i, j; simpl; rewrite ?Z, ?Z', ?IHd by lia; ring.
Qed.
End Euclidean.

(* ======== Tactics of the exported proofs ======== *)

#[export] Hint Rewrite @inner_zero_l @inner_zero_r @inner_plus_l @inner_plus_r @inner_scal_l @inner_scal_r
  @inner_minus_l @inner_minus_r @inner_average @inner_average_r @norm2_power : inner.
#[export] Hint Resolve Rbar_locally_filter : typeclass_instances.
#[export] Instance at_infinity_filter : ProperFilter at_infinity := Rbar_locally_filter p_infty.
#[export] Instance at_minus_infinity_filter : ProperFilter at_minus_infinity := Rbar_locally_filter m_infty.
#[export] Instance above_zero_filter : ProperFilter above_zero := at_right_proper_filter 0.

Lemma exp_above x : 0 < x -> 1 < exp x.
Proof. intros H. rewrite <- exp_0. now apply exp_increasing. Qed.
Lemma cross_lt a b c d : 0 < b -> 0 < d -> a * d < c * b -> a / b < c / d.
Proof.
  intros Hb Hd H. apply Rmult_lt_reg_r with (b * d); [now apply Rmult_lt_0_compat|].
  replace (a / b * (b * d)) with (a * d) by (field; lra). replace (c / d * (b * d)) with (c * b) by (field; lra). exact H.
Qed.
Lemma cross_le a b c d : 0 < b -> 0 < d -> a * d <= c * b -> a / b <= c / d.
Proof.
  intros Hb Hd H. apply Rmult_le_reg_r with (b * d); [now apply Rmult_lt_0_compat|].
  replace (a / b * (b * d)) with (a * d) by (field; lra). replace (c / d * (b * d)) with (c * b) by (field; lra). exact H.
Qed.
Lemma cross_neq a b c d : 0 < b -> 0 < d -> a * d <> c * b -> a / b <> c / d.
Proof.
  intros Hb Hd H E. apply H. replace (a * d) with (a / b * (b * d)) by (field; lra). rewrite E. field. lra.
Qed.
(* Decide which items are equal. *)
Ltac decide_items :=
  repeat match goal with
  | |- context [Nat.eqb ?i ?i] => rewrite (Nat.eqb_refl i)
  | |- context [Nat.eqb ?i ?j] =>
      first [rewrite (proj2 (Nat.eqb_neq i j)) by lia
            | destruct (Nat.eqb_spec i j); [first [exfalso; lia | subst] | try (exfalso; lia)]]
  end; cbn [orb existsb]; cbv iota.
(* Inner products within orthogonal families. *)
Ltac gram :=
  repeat match goal with
  | H : orthonormal ?n ?k |- context [@inner _ (?k ?i) (?k ?j)] => rewrite (H i j) by lia
  | H : orthogonal_of_norm ?n ?b ?k |- context [@inner _ (?k ?i) (?k ?j)] => rewrite (H i j) by lia
  | H : right_angles ?m ?p ?a ?b |- context [@inner _ (?a ?i) (?b ?j)] => rewrite (H i j) by lia
  | H : right_angles ?m ?p ?a ?b |- context [@inner _ (?b ?j) (?a ?i)] =>
      rewrite (inner_sym _ (b j) (a i)), (H i j) by lia
  end.
Ltac expand :=
  cbv beta zeta; unfold update, outer; cbn [nth]; cbn [existsb orb]; decide_items; autorewrite with inner; gram;
  decide_items.
Ltac nonzero := repeat split; try assumption; try solve [lra | nra | apply Rgt_not_eq; first [lra | nra] |
  apply Rlt_not_eq; first [lra | nra]].
Ltac number := first [reflexivity | ring | (field; solve [nonzero]) | lra | nra].
Ltac score := intros; expand; number.
Ltac distinct := repeat constructor; simpl; intuition lia.
Ltac in_range := simpl; intros; intuition (subst; first [assumption | lia]).
Ltac outside H := simpl in H; repeat (apply Decidable.not_or in H; let H' := fresh in destruct H as [H' H]).
(* What is given at a scale t. *)
Ltac at_scale t :=
  repeat match goal with
  | H : forall x : R, _ |- _ => first [pose proof (H t ltac:(lra)) | pose proof (H t)]; clear H
  end; cbv beta in *.
Ltac given_scores i :=
  repeat match goal with
  | H : forall j : nat, (j < _)%nat -> _ |- _ =>
      first [pose proof (H i ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia))
            | pose proof (H i ltac:(lia) ltac:(lia) ltac:(lia))
            | pose proof (H i ltac:(lia) ltac:(lia)) | pose proof (H i ltac:(lia))]; clear H
  end; cbv beta in *.
Ltac scaled_scores := repeat rewrite ?inner_scal_r, ?inner_scal_l in *.
Ltac below := first [lra | (expand; first [lra | nra]) | (scaled_scores; first [lra | nra])].
(* The scores of the items on top, and the gap below them. *)
Ltac top_scores :=
  split;
  [ let i := fresh "i" in let H := fresh "H" in
    intros i H; simpl in H; repeat (destruct H as [H|H]); try contradiction; subst i;
    first [reflexivity | lra | score | (scaled_scores; nra)]
  | let i := fresh "i" in let H := fresh "H" in let N := fresh "N" in
    intros i H N; outside N; given_scores i; below ].
Ltac token_top_scores :=
  split;
  [ let i := fresh "i" in let H := fresh "H" in
    intros i H; simpl in H; repeat (destruct H as [H|H]); try contradiction; subst i; score
  | let i := fresh "i" in let H := fresh "H" in let N := fresh "N" in
    intros i H N; outside N; do 7 (try (destruct i as [|i]; [try (exfalso; lia)|])); try (exfalso; lia);
    try (exfalso; apply N; reflexivity); expand; first [lra | nra] ].
(* Equations of vectors: compare inner products with an arbitrary vector. *)
Ltac vector_equation :=
  apply vector_ext; intro; expand; cbn [length over fold_right]; expand; simpl INR; first [reflexivity | ring | (field; nonzero)].
Ltac basis_rules :=
  rewrite ?vtotal_outer;
  repeat first [rewrite projected_plus | rewrite projected_same by assumption
    | match goal with H : right_angles ?m ?p ?a ?b |- context [combine ?m ?a (coordinates ?a (combine ?p ?b ?y))] =>
        rewrite (projected_other m p a b y H) end
    | match goal with H : right_angles ?m ?p ?a ?b |- context [combine ?p ?b (coordinates ?b (combine ?m ?a ?y))] =>
        rewrite (projected_other p m b a y (right_angles_sym m p a b H)) end].
Ltac coordinate_rules :=
  repeat first [rewrite coordinates_plus | rewrite coordinates_minus | rewrite coordinates_scal | rewrite coordinates_zero
    | rewrite coordinates_combine by (assumption || lia)
    | match goal with H : right_angles ?m ?p ?a ?b |- context [coordinates ?a (combine ?p ?b ?y) ?i] =>
        rewrite (coordinates_other m p a b y i H) by lia end
    | match goal with H : right_angles ?m ?p ?a ?b |- context [coordinates ?b (combine ?m ?a ?y) ?i] =>
        rewrite (coordinates_other p m b a y i (right_angles_sym m p a b H)) by lia end ].
Ltac coordinate_equation := intros; cbv beta; basis_rules; coordinate_rules; unfold coordinates; expand; number.
Ltac basis_equation := basis_rules; first [reflexivity | vector_equation].
(* Facts on weights that need no scores. *)
Ltac weights_fact :=
  match goal with
  | |- alpha _ _ _ _ >= 0 => apply Rle_ge; left; apply softmax_pos; lia
  | |- 0 <= alpha _ _ _ _ => left; apply softmax_pos; lia
  | |- 0 < alpha _ _ _ _ => apply softmax_pos; lia
  | |- alpha _ _ _ _ > 0 => apply softmax_pos; lia
  | |- alpha _ _ _ _ <= 1 => apply softmax_le_1; lia
  | |- total ?n _ = 1 => apply softmax_sum; lia
  | |- alpha _ _ _ _ < alpha _ _ _ _ => apply softmax_lt; [lia|]
  | |- alpha _ _ _ ?i > alpha _ _ _ ?j => apply softmax_lt; [lia|]
  | |- alpha _ _ _ _ <= alpha _ _ _ _ => apply softmax_le; [lia|]
  | |- alpha _ _ _ _ >= alpha _ _ _ _ => apply Rle_ge, softmax_le; [lia|]
  end.
Ltac as_quotient x := lazymatch x with _ / _ => idtac | _ => replace x with (x / 1) by field end.
Ltac quotients :=
  try apply Rlt_gt; try apply Rle_ge;
  match goal with
  | |- ?x < ?y => as_quotient x; as_quotient y; apply cross_lt; [nra|nra|nra]
  | |- ?x <= ?y => as_quotient x; as_quotient y; apply cross_le; [nra|nra|nra]
  | |- ?x <> ?y => as_quotient x; as_quotient y; apply cross_neq; [nra|nra|nra]
  end.
Ltac given_all :=
  match goal with H : forall j : nat, (j < _)%nat -> j <> _ -> _ >= _ |- _ >= _ => apply H; assumption end.
Ltac given_order :=
  repeat match goal with
  | H : forall j : nat, (j < _)%nat -> _ |- _ > _ dot _ =>
     first [apply H; lia | fail 1]
  | H : forall j : nat, (j < _)%nat -> _ |- _ dot _ < _ dot _ => first [apply H; lia | (apply Rgt_lt, H; lia)]
  end.
Ltac order := first [lra | nra | (expand; first [lra | nra])].
Ltac gap_fact :=
  match goal with
  | |- alpha ?n ?k ?q ?j >= 1 / (1 + (INR ?n - 1) * exp (- ?m)) =>
      apply Rle_ge, (softmax_gap n (fun i => k i dot q) j m); [lia|intros; given_all]
  | m : R |- alpha ?n ?k ?q ?j > total_but ?n [?j] _ =>
      apply (softmax_majority n (fun i => k i dot q) j m); [lia|lia|intros; given_all|lra]
  end.
Ltac norm_fact :=
  unfold norm2; first
  [ (expand; rewrite ?Rmult_1_r; first [apply sqrt_1 | (f_equal; number)])
  | (apply sqrt_lt_1_alt; expand; split; nra)
  | (apply Rlt_gt, sqrt_lt_1_alt; expand; split; nra) ].
Ltac exponentials :=
  repeat match goal with |- context [exp ?x] => let P := fresh in pose proof (exp_pos x) as P; revert P;
    generalize (exp x); intros ? ? end.
Ltac sized r := match goal with |- ?x <= _ => replace x with r by (first [ring | (field; nonzero)]); nra end.
(* A comparison of quotients of exponentials that are named: over one denominator, or by multiplying out. *)
Ltac close_formula := first [number | solve [quotients]].
Ltac noise_gone :=
  unfold update; decide_items;
  repeat first [apply vanishing_noise | (apply vtends_plus; [exact _| |]) | simple apply vtends_refl; exact _].
(* Limits of sums and products, once those of the weights and outputs are known. *)
Ltac mirror :=
  cbv beta;
  repeat first
  [ assumption
  | match goal with H : forall i, _ -> tends _ _ _ |- tends _ _ _ => apply H; first [lia | in_range] end
  | match goal with H : forall i, _ -> vtends _ _ _ |- vtends _ _ _ => apply H; first [lia | in_range] end
  | simple apply tends_refl; exact _ | simple apply vtends_refl; exact _
  | (apply tends_plus; [exact _| |]) | (apply tends_minus; [exact _| |]) | (apply tends_opp; [exact _|])
  | (apply vtends_plus; [exact _| |]) | (apply vtends_minus; [exact _| |]) | (apply vtends_scal; [exact _|])
  | (apply vtends_weight; [exact _|])
  | (apply tends_scal; [exact _|]) | (apply tends_inner; [exact _| |]) | (apply tends_mult; [exact _| |]) ].
