// msl_call.h - C++: calls a kernel that tests/msl_shim made a function of, with its arguments from an array of pointers.
#include <type_traits>
#include <utility>

// Memory as a pointer, a constant as a reference; by value: what the launch fills in, the same number in each component.
template <typename P> P call_arg(void *a)
{
    if constexpr (std::is_pointer<P>::value)
        return (P)a;
    else if constexpr (std::is_reference<P>::value)
        return *(std::remove_reference_t<P> *)a;
    else
        return P(*(const unsigned *)a);
}

template <typename... P, size_t... I> void call_with(void (*f)(P...), void **a, std::index_sequence<I...>)
{
    f(call_arg<P>(a[I])...);
}

template <typename... P> void call_kernel(void (*f)(P...), void **a)
{
    call_with(f, a, std::index_sequence_for<P...>());
}
